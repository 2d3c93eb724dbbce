/** All kinds of requests whose acknowledgement is a promise, by name. */
import { deleteSnapshot, fork, snapshot } from './copy-works.ts'
import { create, kill, network, pause, resume, write } from './sandbox-works.ts'
import { deleteSecret, secret, updateSecret } from './secret-works.ts'
import { build, deleteTemplate } from './template-works.ts'
import type { Scene, Work } from './work.ts'

const kinds: Readonly<Record<string, (scene: Scene) => Promise<Work>>> = {
  create,
  write,
  pause,
  resume,
  fork,
  snapshot,
  deleteSnapshot,
  build,
  deleteTemplate,
  secret,
  updateSecret,
  deleteSecret,
  network,
  kill,
}

export const workKinds: readonly string[] = Object.keys(kinds)

/** Prepares a work of this kind: does what must come before its request. */
export async function prepareWork(kind: string, scene: Scene): Promise<Work> {
  const prepare = kinds[kind]
  if (!prepare) throw new Error(`No kind of work is called ${kind}`)
  return prepare(scene)
}
