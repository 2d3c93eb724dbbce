/** Ceph as the object store of a rig. */
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { randomLabel } from '@atoll/kit/id'
import { startCeph } from '../../../../tools/fleet/ceph.ts'
import type { CephStore } from '../../../../tools/fleet/ceph.ts'
import { createOwnedFolder } from '../../../../tools/fleet/owner.ts'
import { createBucket } from '../bucket.ts'

export interface RigStore extends AsyncDisposable {
  readonly gateway: CephStore['gateway']
  /** Settings of the nodes. */
  readonly settings: Readonly<Record<string, string>>
}

/** `host`: an address of this machine that the nodes reach. */
export async function startObjectStore(host: string): Promise<RigStore> {
  await using opened = new AsyncDisposableStack()
  const ceph = opened.use(await startCeph({ host }))
  const bucket = `atoll-${randomLabel(8)}`
  await createBucket(ceph, bucket)
  const folder = await createOwnedFolder('/var/tmp/atoll-test-keys-')
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const keyFile = join(folder, 'keys')
  await writeFile(keyFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const settings = {
    ATOLL_S3_BUCKET: bucket,
    ATOLL_S3_ENDPOINT: ceph.endpoint,
    ATOLL_S3_PATH_STYLE: 'true',
    ATOLL_S3_ACCESS_KEY_ID: ceph.accessKeyId,
    ATOLL_S3_SECRET_ACCESS_KEY: ceph.secretAccessKey,
    ATOLL_S3_KEY_FILE: keyFile,
  }
  const owned = opened.move()
  return { gateway: ceph.gateway, settings, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
