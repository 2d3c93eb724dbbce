/**
 * The dashboard's list with 5,000 sandboxes of a simulated node, in Chromium: time to the first rows, and frames while it
 * scrolls. Baselines are the same page with ten matches, and a page of as many plain lines.
 */
import { join } from 'node:path'
import { openBrowser } from '@atoll/system-tests/dashboard/browser'
import { openSignedInPage } from '@atoll/system-tests/dashboard/signed-in-page'
import { startDashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import type { DashboardUnderTest } from '@atoll/server/sim/dashboard-client'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import type { Page } from 'playwright-core'
import { openSqlite3 } from '../database-shell.ts'
import { interleave } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'

const sandboxCount = 5_000
const fewCount = 10
const scrollMs = 3_000
const pxPerFrame = 60

const names = {
  many: `first rows of ${sandboxCount}`,
  few: `first rows of ${fewCount}`,
  filtered: `first rows of ${fewCount}, sorted by memory`,
  scrolling: 'scrolling the table',
  plain: `scrolling ${sandboxCount} plain lines`,
}

export const dashboardTable: Scenario = {
  name: 'dashboard-table',
  rounds: 10,
  async measure(context) {
    await using opened = new AsyncDisposableStack()
    const limit = String(sandboxCount)
    const server = await startDashboardUnderTest({ ATOLL_TEAM_CONCURRENT_SANDBOXES: limit })
    opened.use(server)
    await fillList(server)
    const browser = await openBrowser()
    opened.defer(() => browser.close())
    const { page, go } = await openSignedInPage(browser, {
      url: server.url(),
      apiKey: server.apiKey,
    })
    const plain = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    await plain.setContent(plainLines)
    const show = async (samples: Samples, name: string, query: string) => {
      await go(`/sandboxes${query}`)
      samples.record(name, await firstRowsMs(page))
    }
    await page.addInitScript({ content: noteFirstRows })
    const samples = await interleave(context, [
      (to) => show(to, names.many, ''),
      (to) => show(to, names.few, '?metadata=kind%3Dfew'),
      (to) => show(to, names.filtered, '?metadata=kind%3Dfew&sort=memory'),
      async (to) => {
        await go('/sandboxes')
        await firstRowsMs(page)
        to.record(names.scrolling, await framesPerSecond(page))
        to.record(names.plain, await framesPerSecond(plain))
      },
    ])
    const { rounds } = context
    return [
      {
        scenario: 'dashboard-table',
        description: `Navigation until the first rows of the dashboard's list, ${rounds} rounds, interleaved`,
        rows: [
          samples.row(names.few),
          samples.row(names.many, names.few),
          samples.row(names.filtered, names.few),
        ],
      },
      {
        scenario: 'dashboard-table-frames',
        description: `Frames per second for ${scrollMs / 1000} s, ${rounds} rounds, interleaved; more is better`,
        unit: 'fps',
        rows: [samples.row(names.plain), samples.row(names.scrolling, names.plain)],
      },
    ]
  },
}

/**
 * Creates a few sandboxes, and copies the record of one until there are enough, with a usage sample each. The node is
 * unreachable then, so that the API does not end the sandboxes that run nowhere.
 */
async function fillList(server: DashboardUnderTest): Promise<void> {
  const create = async (kind: string) => {
    const body = { templateID: 'base', timeout: 86_400, metadata: { kind, owner: 'somebody' } }
    const { status, text } = await server.platform('POST', '/v2/sandboxes', body)
    if (status !== 201) throw new Error(`create answered ${status}: ${text}`)
  }
  for (let index = 0; index < fewCount; index += 1) await create('few')
  await create('many')
  await server.restart(async () => {
    await using shell = await openSqlite3(join(server.dataDir, 'atoll.db'))
    await shell.query(copyStatements)
    server.node.failAll(Code.Unavailable)
  })
}

const copyStatements = `
create temporary table numbers as
  with recursive counted(n) as (
    select 1 union all select n + 1 from counted where n < ${sandboxCount - fewCount - 1}
  )
  select n from counted;
create temporary table original as
  select sandboxes.* from sandboxes join sandbox_metadata on sandbox_id = id
  where key = 'kind' and value = 'many';
create temporary table copies as select original.*, n from original, numbers;
update copies set id = substr(id, 1, 11) || (100000000 + n), started_at = started_at - n * 1000;
alter table copies drop column n;
create temporary table metadata_copies as
  select copies.id, key, value from copies, original
  join sandbox_metadata on sandbox_id = original.id;
insert into sandboxes select * from copies;
insert into sandbox_metadata select * from metadata_copies;
delete from sandbox_metrics;
insert into sandbox_metrics
  select id, (select max(started_at) / 1000 from sandboxes) - 60, 2, abs(random()) % 100,
    abs(random()) % 500000000, 0, 536870912, 0, 4294967296
  from sandboxes;
`

const plainLines = `<div class="grid-body" style="height: 700px; overflow: auto">
  ${Array.from({ length: sandboxCount }, (_, index) => `<p>running sandbox ${index} base</p>`).join('')}
</div>`

/** Scripts for pages are text: this code has no types of a browser. */
const noteFirstRows = `
  const look = () => {
    if (document.querySelector('.grid-body .grid-row a') === null) requestAnimationFrame(look)
    else globalThis.firstRowsMs = performance.now()
  }
  requestAnimationFrame(look)`

/** Milliseconds since the navigation began. */
async function firstRowsMs(page: Page): Promise<number> {
  const read = async () => Number(await page.evaluate('globalThis.firstRowsMs ?? 0'))
  await waitFor('the first rows', async () => (await read()) > 0, { timeoutMs: 300_000 })
  return read()
}

/** Counts frames, and scrolls with every frame. */
const countFrames = `new Promise((resolve) => {
  const body = document.querySelector('.grid-body')
  const began = performance.now()
  let frames = 0
  const step = () => {
    const elapsed = performance.now() - began
    if (elapsed >= ${scrollMs}) return resolve((frames * 1000) / elapsed)
    frames += 1
    body.scrollBy(0, ${pxPerFrame})
    requestAnimationFrame(step)
  }
  requestAnimationFrame(step)
})`

async function framesPerSecond(page: Page): Promise<number> {
  // Chromium draws no frames for a page behind another one.
  await page.bringToFront()
  return Number(await page.evaluate(countFrames))
}
