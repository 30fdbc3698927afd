import { scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { describeStorage } from '../../../resource/storage/storage.conformance.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { PackageRevisionStorage } from './package-revision-storage.ts';

describeStorage('PackageRevisionStorage', { finalizers: true }, async () => {
  const scratch = await scratchRepository();
  const { store } = await scratch.open();
  const storage = new PackageRevisionStorage(store, new EventLog({ clock: scratch.clock }));
  let gates = 0;
  return {
    storage,
    sample: (index) =>
      packageRevisionKind.complete({
        apiVersion: 'porch.kpt.dev/v1alpha1',
        kind: 'PackageRevision',
        metadata: { name: `packages.p${index}.v1`, namespace: 'default' },
        spec: { repository: 'packages', packageName: `p${index}`, workspaceName: 'v1' },
      }),
    changeSpec: (object) => {
      gates += 1;
      return { ...object, spec: { ...object.spec, readinessGates: [{ conditionType: `gate-${gates}` }] } };
    },
    changeStatus: (object) => ({
      ...object,
      status: { conditions: [{ type: 'tested', status: 'True' as const }] },
    }),
    close: async () => {
      await scratch[Symbol.asyncDispose]();
    },
  };
});
