import { runtimeContract } from './runtime.contract.ts'

runtimeContract('runc', '10.200.1.0/24')
