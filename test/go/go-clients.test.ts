import { startUp } from './embedded-server.ts';
import { testGoClients } from './go-client-tests.ts';

testGoClients({ start: ({ folder }) => startUp(folder) });
