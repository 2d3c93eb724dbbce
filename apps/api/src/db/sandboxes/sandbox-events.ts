import type { Kysely, Transaction } from 'kysely'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import {
  findEvent,
  maxSandboxEvents,
  sandboxEventKinds,
} from '../../domain/sandboxes/sandbox-events.ts'
import type { SandboxEventStore } from '../../domain/sandboxes/sandbox-events.ts'
import type { Schema } from '../schema.ts'

export function sqlSandboxEventStore(db: Kysely<Schema>): SandboxEventStore {
  return {
    async list(sandboxId) {
      const rows = await db
        .selectFrom('sandbox_events')
        .select(['at', 'kind'])
        .where('sandbox_id', '=', sandboxId)
        .orderBy('at', 'desc')
        .limit(maxSandboxEvents)
        .execute()
      return rows.toReversed().flatMap(({ at, kind: text }) => {
        const kind = sandboxEventKinds.find((known) => known === text)
        return kind ? [{ at: new Date(at), kind }] : [] // a newer Atoll version wrote it
      })
    },
  }
}

/** Runs in the transaction of the change. Creates and kills add nothing. */
export async function recordEvent(
  db: Transaction<Schema>,
  before: Sandbox,
  after: Sandbox,
): Promise<void> {
  const kind = findEvent(before, after)
  if (kind === undefined) return
  const { id: sandbox_id } = after
  await db.insertInto('sandbox_events').values({ sandbox_id, at: Date.now(), kind }).execute()
  const oldest = await db
    .selectFrom('sandbox_events')
    .select('at')
    .where('sandbox_id', '=', sandbox_id)
    .orderBy('at', 'desc')
    .offset(maxSandboxEvents)
    .limit(1)
    .executeTakeFirst()
  if (!oldest) return
  await db
    .deleteFrom('sandbox_events')
    .where('sandbox_id', '=', sandbox_id)
    .where('at', '<=', oldest.at)
    .execute()
}
