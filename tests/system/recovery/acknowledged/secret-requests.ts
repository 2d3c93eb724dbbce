import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { post } from './acknowledged-request.ts'
import type { RequestContext, AcknowledgedRequest } from './acknowledged-request.ts'

export async function secret(context: RequestContext): Promise<AcknowledgedRequest> {
  const name = `s-${randomUUID()}`
  return {
    send: () => post(context, '/secrets', { name, value: 'the value' }),
    status: 201,
    record: () => void context.acknowledged.secrets.set(name, 1),
    check: () => checkSecret(context, name, 1),
  }
}

export async function updateSecret(context: RequestContext): Promise<AcknowledgedRequest> {
  const [name, version] = await findOrCreateSecret(context)
  return {
    send: () => post(context, `/secrets/${name}`, { value: 'another value' }),
    status: 200,
    record: () => void context.acknowledged.secrets.set(name, version + 1),
    check: () => checkSecret(context, name, version + 1),
  }
}

export async function deleteSecret(context: RequestContext): Promise<AcknowledgedRequest> {
  const { secrets, deletedSecrets } = context.acknowledged
  const [name] = await findOrCreateSecret(context)
  return {
    send: () => context.cloud.platform('DELETE', `/secrets/${name}`),
    status: 204,
    record() {
      secrets.delete(name)
      deletedSecrets.add(name)
    },
    check: () => checkSecret(context, name, undefined),
  }
}

/** `version` is undefined for a secret that must not exist. */
async function checkSecret(
  { cloud }: RequestContext,
  name: string,
  version: number | undefined,
): Promise<void> {
  const { json } = await cloud.platform('GET', `/secrets/${name}`)
  assert.equal(Object(json).currentVersion, version)
}

async function findOrCreateSecret(context: RequestContext): Promise<readonly [string, number]> {
  const { secrets } = context.acknowledged
  const [existingSecret] = secrets
  if (existingSecret) return existingSecret
  const name = `s-${randomUUID()}`
  assert.equal((await post(context, '/secrets', { name, value: 'the value' })).status, 201)
  secrets.set(name, 1)
  return [name, 1]
}
