import { runtimeContract } from './runtime.contract.ts'

runtimeContract('gvisor', '10.200.0.0/24')
