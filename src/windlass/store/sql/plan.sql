-- Plans, which never change.

-- name: plan_get
SELECT body FROM windlass.plans WHERE hash = $1

-- name: plan_put
INSERT INTO windlass.plans (hash, body) VALUES ($1, $2) ON CONFLICT DO NOTHING
