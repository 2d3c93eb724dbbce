import { z } from 'zod'
import { defineOperation } from './operation.ts'

export const KeyRotation = z
  .object({
    currentKeyID: z.string().describe('Key of all values that are written from now on'),
    isNewKey: z
      .boolean()
      .describe('False if an earlier rotation was interrupted, and this call completed it'),
    resealed: z.int().min(0).describe('Records that were encrypted again'),
    unreadable: z.int().min(0).describe('Records that could not be read. Older keys are kept'),
    droppedKeyIDs: z.array(z.string()),
    keptKeyIDs: z.array(z.string()).describe('Older keys that are still in the key file'),
  })
  .meta({ id: 'KeyRotation' })

export const rotateEncryptionKey = defineOperation({
  id: 'admin.encryption.rotate',
  summary: 'Replace the encryption key, and encrypt all secrets again while sandboxes run',
  method: 'POST',
  path: '/admin/encryption/rotate',
  auth: 'admin',
  replies: { 200: { description: 'Everything readable has the new key', body: KeyRotation } },
  errors: [400, 409, 500],
})
