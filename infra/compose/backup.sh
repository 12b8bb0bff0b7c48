#!/bin/sh
# Copies MLflow's database, the artifact store and MLflow's artifacts into a folder, while all of them run.
#   sudo ./backup.sh FOLDER
# What refers to something is copied before what it refers to: pointers, then the database, then manifests, then
# objects and models. All are written the other way round (objects first), so whatever a copy names was there when it was
# copied, and is in a later step's copy. A retention or a gc may remove old things meanwhile, which the database's copy
# may name: so all that is there is copied before the database, too, and the copy keeps it.
set -eu
[ $# -eq 1 ] || { echo "usage: backup.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
BACKUP=$(cd "$1" && pwd)
export BACKUP
cd "$(dirname "$0")"
chown "${BACKUP_OWNER:-10001}" "$BACKUP" # the tools' user
chmod 0700 "$BACKUP"  # it holds all that the stack knows
rm -f "$BACKUP/complete"

tool() {
    docker compose run --rm --no-deps --no-TTY "$@"
}

copy_contents() {
    for room in manifests objects; do # named by their content: of one size they are the same
        tool rclone copy s3:march-artifacts /backup/march-artifacts --size-only --include "/$room/**"
    done
    tool rclone copy s3:march-artifacts /backup/march-artifacts --include "/models/**"
}

copy_contents
tool rclone sync s3:march-artifacts /backup/march-artifacts --include "/pointers/**"
tool database pg_dump --format=custom --file=/backup/mlflow.dump
copy_contents
tool rclone sync s3:mlflow-artifacts /backup/mlflow-artifacts
date -u +%Y-%m-%dT%H:%M:%SZ >"$BACKUP/complete"
echo "$BACKUP: complete"
