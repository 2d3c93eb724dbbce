import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

/** Generates the protocol code into a temporary folder and names the committed files that differ. */
export async function compareGenerated(
  root: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const contracts = join(root, 'packages/contracts')
  const fresh = await mkdtemp(join(tmpdir(), 'atoll-generated-'))
  try {
    const template = join(contracts, 'buf.gen.yaml')
    await run('buf', ['generate', join(contracts, 'proto'), '--template', template, '-o', fresh], {
      env,
    })
    const stale = await differences(join(fresh, 'gen'), join(contracts, 'gen'))
    return stale.length > 0
      ? `generated code is stale; run: npm run generate\n${stale.join('\n')}`
      : undefined
  } finally {
    await rm(fresh, { recursive: true })
  }
}

/** Returns the files that differ or exist in one folder only. */
export async function differences(a: string, b: string): Promise<string[]> {
  const names = new Set([a, b].flatMap((cwd) => globSync('**/*.*', { cwd })))
  if (names.size === 0) throw new Error(`no files in ${a} and ${b}`)
  const read = (folder: string, name: string) =>
    readFile(join(folder, name), 'utf8').catch(() => undefined)
  const different = await Promise.all(
    [...names].map(async (name) => ((await read(a, name)) === (await read(b, name)) ? [] : [name])),
  )
  return different.flat()
}
