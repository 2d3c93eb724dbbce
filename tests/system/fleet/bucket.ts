import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import type { ObjectSettings } from '@atoll/objects/settings'
import type { CephStore } from '../../../tools/fleet/ceph.ts'

export async function createBucket(ceph: CephStore, bucket: string): Promise<void> {
  const { endpoint, region, accessKeyId, secretAccessKey } = ceph
  const credentials = { accessKeyId, secretAccessKey }
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true })
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
  } finally {
    client.destroy()
  }
}

export function objectSettings(ceph: CephStore, bucket: string): ObjectSettings {
  const { endpoint, region, accessKeyId, secretAccessKey } = ceph
  const place = { bucket, endpoint, region, pathStyle: true, prefix: 'test/' }
  return { ...place, accessKeyId, secretAccessKey, keyFile: '/nonexistent' }
}
