import type { Kysely } from 'kysely'
import type { Template, TemplateStore } from '../domain/template.ts'
import type { Schema, TemplateRow } from './schema.ts'

export function sqlTemplateStore(db: Kysely<Schema>): TemplateStore {
  return {
    async find(name) {
      const row = await db
        .selectFrom('templates')
        .selectAll()
        .where('public', '=', 1)
        .where((where) => where.or([where('id', '=', name), where('alias', '=', name)]))
        .executeTakeFirst()
      return row && fromRow(row)
    },
    async ensure(template, now) {
      const { cpuCount, memoryMb, diskSizeMb } = template.resources
      const current = {
        public: template.public ? 1 : 0,
        node_template_id: template.nodeTemplateId,
        cpu_count: cpuCount,
        memory_mb: memoryMb,
        disk_size_mb: diskSizeMb,
        updated_at: now.getTime(),
      }
      await db
        .insertInto('templates')
        .values({
          id: template.id,
          build_id: template.buildId,
          alias: template.alias ?? null,
          created_at: now.getTime(),
          ...current,
        })
        .onConflict((conflict) => conflict.column('alias').doUpdateSet(current))
        .execute()
    },
  }
}

function fromRow(row: TemplateRow): Template {
  return {
    id: row.id,
    buildId: row.build_id,
    alias: row.alias ?? undefined,
    public: row.public === 1,
    nodeTemplateId: row.node_template_id,
    resources: {
      cpuCount: row.cpu_count,
      memoryMb: row.memory_mb,
      diskSizeMb: row.disk_size_mb,
    },
  }
}
