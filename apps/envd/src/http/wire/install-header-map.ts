/**
 * Replaces the global class `Headers`. Import this before anything that makes headers. Only the bundle never loads the
 * HTTP client: an import of `node:http` by a module reads all its exports, which loads it too.
 */
import { HeaderMap } from './header-map.ts'

// `Object.defineProperty` would first read the original, and so load the HTTP client. An assignment does not.
Reflect.set(globalThis, 'Headers', HeaderMap)
