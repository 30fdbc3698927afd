import { afterEach, describe, expect, inject, test } from 'vitest';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../src/kubernetes/http-client.ts';
import { ClusterStorage } from '../../src/kubernetes/storage/cluster-storage.ts';
import { ClusterTrustLedger } from '../../src/package/trust/cluster/cluster-trust-ledger.ts';
import { describeTrustLedger, key, raiseOf, scope } from '../../src/package/trust/ledger/trust-ledger.conformance.ts';
import { configMapKind } from '../../src/resource/kinds/core/config-map.ts';
import { usePlace } from '../conformance/support/place.ts';

const place = usePlace();
const open: { ledger: ClusterTrustLedger; connection: Connection }[] = [];
let ledgers = 0;

afterEach(async () => {
  for (const { ledger, connection } of open.splice(0)) {
    ledger.close();
    await connection.close();
  }
});

/** A process that leads with a ledger; by default with one of its own. */
async function lead(epoch: number, name?: string): Promise<ClusterTrustLedger> {
  ledgers += 1;
  const connection = new Connection(await findClusterAccess({ kubeconfig: inject('kubeconfig') }));
  const objects = new ClusterStorage(configMapKind, new HttpClient({ connection, face: 'controller' }));
  const { namespace } = place;
  const ledger = await ClusterTrustLedger.open({ objects, namespace, epoch, name: name ?? `trust-${ledgers}` });
  open.push({ ledger, connection });
  return ledger;
}

describe('ClusterTrustLedger over a kube-apiserver', () => {
  describeTrustLedger(() => lead(1));

  test('of three processes that write at once, nothing is lost and nothing goes down', async () => {
    const processes = [await lead(1, 'shared'), await lead(2, 'shared'), await lead(3, 'shared')];
    for (const [index, ledger] of processes.entries()) {
      ledger.addKey(key(`k${index}`));
      ledger.putRepository({ id: `r${index}`, address: 'one', mainHeads: { main: `c${index}` } });
      for (let number = 0; number < 100; number += 1)
        ledger.raise([raiseOf(`p${number}`, index + 1), raiseOf(`own-${index}-${number}`, 1)]);
    }
    await Promise.all(processes.map((ledger) => ledger.flushed()));
    const after = await lead(4, 'shared');
    expect(after.keys()).toHaveLength(3);
    expect(after.repositories()).toHaveLength(3);
    for (let number = 0; number < 100; number += 1) {
      expect(after.mark(scope(`p${number}`))).toMatchObject({ sequence: 3 });
      for (const index of processes.keys()) expect(after.mark(scope(`own-${index}-${number}`))).toBeDefined();
    }
  });
});
