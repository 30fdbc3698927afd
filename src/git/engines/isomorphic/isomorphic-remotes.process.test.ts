import { testRemotes } from '../../remote/remotes.conformance.ts';

testRemotes('without git');
