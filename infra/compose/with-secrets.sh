#!/bin/sh
# First process of the containers whose images know no files of secrets: makes NAME of each NAME_FILE that names a
# file, and becomes the command that it is given. What is missing is said in one line; 78 is EX_CONFIG.
set -eu

for variable in $(env | sed -n 's/^\([A-Z][A-Z0-9_]*_FILE\)=.*/\1/p'); do
    file=""
    eval "file=\$$variable"
    if [ ! -r "$file" ] || [ ! -s "$file" ]; then
        echo "with-secrets: $variable: $file is missing, empty, or not readable by user $(id -u); run make-secrets.sh" >&2
        exit 78
    fi
    export "${variable%_FILE}=$(cat "$file")"
    unset "$variable"
done
exec "$@"
