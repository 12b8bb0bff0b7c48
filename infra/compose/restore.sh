#!/bin/sh
# Puts back what backup.sh copied, into a new stack or over one that is there; then start it as always.
#   sudo ./restore.sh FOLDER
# The order is backup.sh's in reverse, so that at no time anything names what is not there. Of the database, what is
# newer than the copy is lost, and so are newer pointers of the store; what they named stays until gc.
set -eu
[ $# -eq 1 ] || { echo "usage: restore.sh FOLDER" >&2; exit 2; }
[ -f "$1/complete" ] || { echo "restore: $1: holds no complete backup; name a folder of backup.sh" >&2; exit 2; }
BACKUP=$(cd "$1" && pwd)
export BACKUP
cd "$(dirname "$0")"

tool() {
    docker compose run --rm --no-deps --no-TTY "$@"
}

docker compose --profile cpu --profile gpu stop schedule schedule-gpu mlflow
docker compose up --detach --wait postgres s3
docker compose run --rm --no-deps buckets
tool rclone copy /backup/mlflow-artifacts s3:mlflow-artifacts
tool rclone copy /backup/march-artifacts s3:march-artifacts --include "/models/**"
for room in objects manifests; do
    tool rclone copy /backup/march-artifacts s3:march-artifacts --size-only --include "/$room/**"
done
# Into a database of its own, which then takes the place of the old one: over that, a copy from before an upgrade of MLflow
# cannot be restored, and a restore that fails leaves the old one as it is.
tool database dropdb --if-exists mlflow_restored
tool database createdb mlflow_restored
tool database pg_restore --no-owner --single-transaction --exit-on-error --dbname=mlflow_restored /backup/mlflow.dump
tool database dropdb --if-exists --force mlflow
tool database psql --dbname=postgres --command='ALTER DATABASE mlflow_restored RENAME TO mlflow'
tool rclone sync /backup/march-artifacts s3:march-artifacts --include "/pointers/**"
echo "$BACKUP: restored as of $(cat "$BACKUP/complete")"
