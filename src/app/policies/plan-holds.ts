import { holderAmong, holdRule } from '../../../controllers/wave-plan/holding-plan.ts';
import { planSelector } from '../../../controllers/wave-plan/select-revisions.ts';
import { selectsByName } from '../../package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { ApprovalHolds } from '../../package/store/unmet-rules.ts';
import type { Client } from '../../resource/client/client.ts';
import { nameSelectingOf } from '../../rollout/wave/plan-selection.ts';
import type { ObjectReaders } from './object-readers.ts';

export interface PlanHoldsOptions {
  readonly store: Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>;
  readonly readers: () => Pick<ObjectReaders, 'activePlans' | 'repositories' | 'variantReader'>;
  readonly client: Client;
}

/**
 * The plans that hold revisions, as last read, for what is shown and reported: no objects are listed for a revision. Decisions read the plans
 * again (`holdingPlan`).
 */
export function planHolds({ store, readers, client }: PlanHoldsOptions): ApprovalHolds {
  return {
    mayHold: ({ namespace, key }) => {
      const repository = readers().repositories.get({ namespace, name: key.repository });
      const selects = ({ spec }: ReturnType<typeof nameSelectingOf>) =>
        selectsByName(spec.selector, { key }, repository);
      return readers().activePlans(namespace).map(nameSelectingOf).some(selects);
    },
    holdOf: async (revision) => {
      const { namespace } = revision;
      const { repositories, variantReader: variants } = readers();
      const sources = { store, variants, repositoryOf: (name: string) => repositories.get({ namespace, name }) };
      const plans = readers().activePlans(namespace);
      const plan = await holderAmong(plans, revision, (one) => planSelector(one, sources), client);
      return plan && holdRule(plan, revision);
    },
  };
}
