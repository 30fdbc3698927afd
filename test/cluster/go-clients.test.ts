import { inject } from 'vitest';
import { testGoClients } from '../go/go-client-tests.ts';
import { startInstalled } from './support/installed-server.ts';

const missing = inject('serverMissing');

testGoClients({ missing, words: ['-cluster'], start: ({ folder }) => startInstalled(folder) });
