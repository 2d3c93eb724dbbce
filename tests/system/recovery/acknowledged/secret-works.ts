import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { post } from './work.ts'
import type { Scene, Work } from './work.ts'

export async function secret(scene: Scene): Promise<Work> {
  const name = `s-${randomUUID()}`
  return {
    request: () => post(scene, '/secrets', { name, value: 'the value' }),
    status: 201,
    enter: () => void scene.acknowledged.secrets.set(name, 1),
    check: () => checkSecret(scene, name, 1),
  }
}

export async function updateSecret(scene: Scene): Promise<Work> {
  const [name, version] = await findOrCreateSecret(scene)
  return {
    request: () => post(scene, `/secrets/${name}`, { value: 'another value' }),
    status: 200,
    enter: () => void scene.acknowledged.secrets.set(name, version + 1),
    check: () => checkSecret(scene, name, version + 1),
  }
}

export async function deleteSecret(scene: Scene): Promise<Work> {
  const { secrets, deletedSecrets } = scene.acknowledged
  const [name] = await findOrCreateSecret(scene)
  return {
    request: () => scene.cloud.platform('DELETE', `/secrets/${name}`),
    status: 204,
    enter() {
      secrets.delete(name)
      deletedSecrets.add(name)
    },
    check: () => checkSecret(scene, name, undefined),
  }
}

/** `version` is undefined for a secret that must not exist. */
async function checkSecret(
  { cloud }: Scene,
  name: string,
  version: number | undefined,
): Promise<void> {
  const { json } = await cloud.platform('GET', `/secrets/${name}`)
  assert.equal(Object(json).currentVersion, version)
}

async function findOrCreateSecret(scene: Scene): Promise<readonly [string, number]> {
  const { secrets } = scene.acknowledged
  const [known] = secrets
  if (known) return known
  const name = `s-${randomUUID()}`
  assert.equal((await post(scene, '/secrets', { name, value: 'the value' })).status, 201)
  secrets.set(name, 1)
  return [name, 1]
}
