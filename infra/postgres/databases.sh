#!/bin/sh
# Runs once, when the data volume is new: for each service that owns a database, a role that owns the schema and migrates,
# and the service's own role, which may connect and is given rows, never DDL, by `migrate`. The executor has none.
# Passwords come from PLACET_<SERVICE>_DB_PASSWORD and PLACET_<SERVICE>_OWNER_PASSWORD; PGHOST and the like count.
set -eu

make_database() {
    SERVICE="placet_$1" PASSWORD="$2" OWNER_PASSWORD="$3" \
        psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv service SERVICE
\getenv password PASSWORD
\getenv owner_password OWNER_PASSWORD
select :'service' || '_owner' as owner \gset
create role :"service" login password :'password';
create role :"owner" login password :'owner_password';
create database :"service" owner :"owner";
revoke all on database :"service" from public;
grant connect on database :"service" to :"service";
SQL
}

make_database ingress "$PLACET_INGRESS_DB_PASSWORD" "$PLACET_INGRESS_OWNER_PASSWORD"
make_database planner "$PLACET_PLANNER_DB_PASSWORD" "$PLACET_PLANNER_OWNER_PASSWORD"
make_database permission "$PLACET_PERMISSION_DB_PASSWORD" "$PLACET_PERMISSION_OWNER_PASSWORD"
make_database admission "$PLACET_ADMISSION_DB_PASSWORD" "$PLACET_ADMISSION_OWNER_PASSWORD"

# By default everybody may connect to these two, and a login has no business there.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
revoke all on database postgres from public;
revoke all on database template1 from public;
SQL
