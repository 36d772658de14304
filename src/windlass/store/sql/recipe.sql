-- Recipes and their versions; each version is a plan.

-- name: recipe_put
-- Adds a version unless any version has this plan. A restarted old worker must not make its plan the newest again.
INSERT INTO windlass.recipes (name, version, plan)
SELECT $1, coalesce(max(version), 0) + 1, $2
FROM windlass.recipes WHERE name = $1
HAVING NOT coalesce(bool_or(plan = $2), false)
ON CONFLICT DO NOTHING

-- name: recipe_put_newest
-- Adds a version unless the newest version has this plan: an explicit rollback.
INSERT INTO windlass.recipes (name, version, plan)
SELECT $1, coalesce(max(version), 0) + 1, $2
FROM windlass.recipes WHERE name = $1
HAVING (SELECT r.plan FROM windlass.recipes r WHERE r.name = $1 ORDER BY r.version DESC LIMIT 1) IS DISTINCT FROM $2
ON CONFLICT DO NOTHING

-- name: recipe_describe
-- All versions with the same plan share one description: the given description, or the existing one. Only a changed
-- description is written, so a worker that starts writes nothing.
UPDATE windlass.recipes r
SET description = d.description
FROM (
    SELECT coalesce(nullif($3::text, ''), max(description), '') AS description
    FROM windlass.recipes WHERE name = $1 AND plan = $2
) AS d
WHERE r.name = $1 AND r.plan = $2 AND r.description <> d.description

-- name: recipe_of_plan
SELECT max(version) FILTER (WHERE plan = $2) AS version, max(version) AS newest FROM windlass.recipes WHERE name = $1

-- name: recipe_latest
SELECT version, plan, description FROM windlass.recipes WHERE name = $1 ORDER BY version DESC LIMIT 1

-- name: recipe_version
-- The `version` is the newest that is the same plan, as documents of jobs show it.
SELECT (SELECT max(s.version) FROM windlass.recipes s WHERE s.name = r.name AND s.plan = r.plan) AS version,
       plan, description
FROM windlass.recipes r WHERE name = $1 AND version = $2

-- name: recipe_list
SELECT DISTINCT ON (name) name, version, plan, created_at, description FROM windlass.recipes ORDER BY name, version DESC

-- name: recipe_versions
SELECT version, plan, created_at, description FROM windlass.recipes WHERE name = $1 ORDER BY version DESC

-- name: plan_versions
-- The newest version of a recipe for each of these plans.
SELECT r.name, r.plan, max(r.version) AS version FROM windlass.recipes r
JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS d (name, plan)) d ON d.name = r.name AND d.plan = r.plan
GROUP BY r.name, r.plan

-- fragment: recent_inputs_among (which)
SELECT j.id, j.created_at, j.input FROM (
    SELECT DISTINCT ON (md5(j.input::text)) j.id, j.created_at, j.input FROM (
        SELECT j.id, j.created_at, j.input FROM (
            SELECT id, created_at, input, recipe, deleted_at FROM windlass.jobs :which
        ) j
        WHERE j.recipe = $1 AND j.deleted_at IS NULL AND pg_column_size(j.input) <= $3
        ORDER BY j.id DESC LIMIT $4
    ) j
    ORDER BY md5(j.input::text), j.id DESC
) j
ORDER BY j.id DESC LIMIT $5

-- name: recent_inputs
-- The distinct recent inputs of a recipe, from the newest $2 jobs of all callers; large inputs are left out.
-- include: recent_inputs_among (which: ORDER BY id DESC LIMIT $2)

-- name: recent_inputs_caller
-- The distinct recent inputs of a recipe from one caller's jobs (by jobs_caller).
-- include: recent_inputs_among (which: WHERE caller = $6 ORDER BY id DESC LIMIT $2)
