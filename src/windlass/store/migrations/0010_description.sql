-- What a recipe's docstring says, for people. It is no part of the plan: a corrected docstring makes no new version.
-- Releases before this one write nothing here.
ALTER TABLE windlass.recipes ADD COLUMN description text NOT NULL DEFAULT '';
