import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadApiConfig } from './config.ts'

test('nothing needs to be configured', () => {
  assert.deepEqual(loadApiConfig({ HOME: '/root' }), {
    ATOLL_DATA_DIR: '/var/lib/atoll',
    ATOLL_BASE_CPU_COUNT: 2,
    ATOLL_BASE_MEMORY_MB: 1024,
    ATOLL_BASE_DISK_SIZE_MB: 4096,
    ATOLL_MAX_SANDBOX_SECONDS: 86_400,
    ATOLL_LOG_LEVEL: 'info',
  })
})

test('all mistakes are reported at once', () => {
  assert.throws(
    () => loadApiConfig({ ATOLL_BASE_MEMORY_MB: '64', ATOLL_BASE_CPU_COUNT: 'many' }),
    /ATOLL_BASE_CPU_COUNT[\s\S]*ATOLL_BASE_MEMORY_MB|ATOLL_BASE_MEMORY_MB[\s\S]*ATOLL_BASE_CPU_COUNT/,
  )
})
