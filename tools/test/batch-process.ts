/**
 * Process of a batch of test files: runs each as a suite, so that its hooks apply to its own tests only. Its first
 * argument is a file that gets the path of each test file as it begins, at once, even if the process hangs later.
 */
import { appendFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { after, suite } from 'node:test'
import { pathToFileURL } from 'node:url'

/** The limit of single tests does not apply to files. */
const noLimit = 2 ** 31 - 1

const [begunPath, ...paths] = process.argv.slice(2)
if (begunPath === undefined) throw new Error('usage: batch-process.ts <file> <test file> …')
for (const path of paths) {
  appendFileSync(begunPath, `${path}\n`)
  await runFile(path)
}

/** Resolves after the last hook of the file. */
function runFile(path: string): Promise<void> {
  const { promise, resolve: end } = Promise.withResolvers<void>()
  void suite(path, { timeout: noLimit }, async () => {
    try {
      await import(pathToFileURL(resolve(path)).href)
      after(() => end())
    } catch (error) {
      end()
      throw error
    }
  })
  return promise
}
