-- An indexed label is declared by an installation (store/labels.py), no longer named by the engine: `corpus` was the one.
--
-- The index stays, under the name of a declared label, where jobs carry the label: lists by it stay quick, also those of
-- older processes, whose statement the planner serves by the same index. Elsewhere it had no entry.
DO $$
BEGIN
    IF EXISTS (SELECT FROM windlass.jobs WHERE labels ? 'corpus') THEN
        ALTER INDEX windlass.jobs_corpus RENAME TO jobs_label_corpus;
    ELSE
        DROP INDEX windlass.jobs_corpus;
    END IF;
END
$$;
