import { RunningUp } from '../support/api/running-up.ts';
import { testGoClients } from './go-client-tests.ts';

testGoClients({
  async start({ data }) {
    const up = await RunningUp.start(data);
    return {
      ...{ kubeconfig: up.folder.kubeconfig, api: up.api },
      ownFailures: () => up.ownFailures(),
      stop: () => up.end(),
    };
  },
});
