import { testRemotes } from './remotes.conformance.ts';

testRemotes('auto');
