#!/bin/sh
# Makes the files of secrets that compose.yaml names, each random, once: a file that is there stays as it is.
#   sudo ./make-secrets.sh [FOLDER]
# They belong to root and can be read by the group 10001, which all containers that need one are in.
set -eu
folder=${1:-$(dirname "$0")/secrets}
group=${SECRETS_GROUP:-10001}

mkdir -p "$folder"
chmod 0700 "$folder"
umask 077
for name in march_reward_token postgres_password s3_access_key s3_secret_key mlflow_password mlflow_session_key \
    grafana_admin_password; do
    file=$folder/$name
    if [ -s "$file" ]; then
        continue
    fi
    # Letters and digits alone: they stand in addresses and configuration files without being quoted.
    LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c 40 >"$file.new"
    if ! chgrp "$group" "$file.new"; then
        rm -f "$file.new"
        echo "make-secrets: $file: cannot be given to the group $group; run this as root" >&2
        exit 1
    fi
    chmod 0440 "$file.new"
    mv "$file.new" "$file"
    echo "$file"
done
