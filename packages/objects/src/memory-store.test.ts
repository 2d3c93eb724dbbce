import { checkObjectStore } from './object-store.contract.ts'
import { createMemoryStore } from './testing/memory-store.ts'

checkObjectStore(async () => createMemoryStore())
