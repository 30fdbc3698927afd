import { describe } from 'vitest';
import { MemoryTrustLedger } from './memory-trust-ledger.ts';
import { describeTrustLedger } from './trust-ledger.conformance.ts';

describe('MemoryTrustLedger', () => describeTrustLedger(() => new MemoryTrustLedger()));
