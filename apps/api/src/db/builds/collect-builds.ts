import type { Kysely, Transaction } from 'kysely'
import type { Schema } from '../schema.ts'

/**
 * Finds ready builds of teams that nothing has used since `time`: every tag has selected a newer build since then, no
 * sandbox ran or is paused, and no snapshot has the same files.
 */
export async function findUnusedBuilds(
  db: Kysely<Schema>,
  time: Date,
  limit: number,
): Promise<string[]> {
  const rows = await unusedBuilds(db, time.getTime()).limit(limit).execute()
  return rows.map(({ id }) => id)
}

/**
 * Releases the files of a build, if it is still unused. The record stays, since clients count and list builds. Returns
 * false when the build is used again.
 */
export async function collectBuild(
  db: Transaction<Schema>,
  id: string,
  { unusedSince, now }: { readonly unusedSince: Date; readonly now: Date },
): Promise<boolean> {
  const build = await db
    .selectFrom('template_builds')
    .select('template_id')
    .where('id', '=', id)
    .executeTakeFirst()
  if (!build) return false
  // Lock the template: new tags and sandbox starts change the same row.
  const template = db.selectFrom('templates').select('id').where('id', '=', build.template_id)
  await template.forUpdate().execute()
  const unused = await unusedBuilds(db, unusedSince.getTime())
    .where('build.id', '=', id)
    .executeTakeFirst()
  if (!unused) return false
  await db.deleteFrom('template_tags').where('build_id', '=', id).execute()
  await db
    .updateTable('template_builds')
    .set({ node_template_id: null, updated_at: now.getTime() })
    .where('id', '=', id)
    .execute()
  return true
}

function unusedBuilds(db: Kysely<Schema>, time: number) {
  return db
    .selectFrom('template_builds as build')
    .innerJoin('templates', 'templates.id', 'build.template_id')
    .select('build.id')
    .where('templates.team_id', 'is not', null)
    .where('is_snapshot', '=', 0)
    .where('build.status', '=', 'ready')
    .where('build.node_template_id', 'is not', null)
    .where('build.updated_at', '<', time)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('template_tags as tag')
            .select('tag.tag')
            .whereRef('tag.build_id', '=', 'build.id')
            .where((of) =>
              of.not(
                of.exists(
                  of
                    .selectFrom('template_tags as later')
                    .innerJoin('template_builds as newer', 'newer.id', 'later.build_id')
                    .select('later.tag')
                    .whereRef('later.template_id', '=', 'tag.template_id')
                    .whereRef('later.tag', '=', 'tag.tag')
                    .whereRef('later.created_at', '>', 'tag.created_at')
                    .where('later.created_at', '<', time)
                    .where('newer.status', '=', 'ready')
                    .where('newer.finished_at', '<', time),
                ),
              ),
            ),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('sandboxes')
            .select('sandboxes.id')
            .whereRef('sandboxes.build_id', '=', 'build.id')
            .where((of) => of.or([of('state', '!=', 'ended'), of('ended_at', '>=', time)])),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('template_builds as other')
            .select('other.id')
            .whereRef('other.node_template_id', '=', 'build.node_template_id')
            .whereRef('other.id', '!=', 'build.id'),
        ),
      ),
    )
    .orderBy('build.updated_at')
}
