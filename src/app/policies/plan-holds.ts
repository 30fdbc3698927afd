import { holderAmong, holdRule } from '../../../controllers/wave-plan/holding-plan.ts';
import { planSelector } from '../../../controllers/wave-plan/select-revisions.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../package/model/revision/revision-state.ts';
import { selectsByName } from '../../package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { ApprovalHolds } from '../../package/store/unmet-rules.ts';
import type { Client } from '../../resource/client/client.ts';
import type { WavePlan } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { Stored } from '../../resource/object/object.ts';
import { nameSelectingOf } from '../../rollout/wave/plan-selection.ts';
import type { ObjectReaders } from './object-readers.ts';

export interface PlanHoldsOptions {
  readonly store: Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>;
  readonly readers: () => Pick<ObjectReaders, 'activePlans' | 'readActivePlans' | 'repositories' | 'variantReader'>;
  readonly client: Client;
}

/**
 * The plans that hold revisions: as last read for what is shown and reported, read again for a decision. What their selectors depend on is as last
 * read in both, as for policies: no variants are listed for a revision.
 */
export function planHolds({ store, readers, client }: PlanHoldsOptions): ApprovalHolds {
  return {
    mayHold: ({ namespace, key }) => {
      const repository = readers().repositories.get({ namespace, name: key.repository });
      const selects = ({ spec }: ReturnType<typeof nameSelectingOf>) =>
        selectsByName(spec.selector, { key }, repository);
      return readers().activePlans(namespace).map(nameSelectingOf).some(selects);
    },
    holdOf: (revision) => holdAmong(readers().activePlans(revision.namespace), revision),
    readHold: async (revision) => holdAmong(await readers().readActivePlans(revision.namespace), revision),
  };

  async function holdAmong(
    plans: readonly Stored<WavePlan>[],
    revision: PackageRevision,
  ): Promise<BlockingRule | undefined> {
    const { namespace } = revision;
    const { repositories, variantReader: variants } = readers();
    const sources = { store, variants, repositoryOf: (name: string) => repositories.get({ namespace, name }) };
    const plan = await holderAmong(plans, revision, (one) => planSelector(one, sources), client);
    return plan && holdRule(plan, revision);
  }
}
