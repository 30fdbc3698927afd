import { timestamp } from '../../src/foundation/time/clock.ts';
import { type Explainer, repairSteps, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import { rejectionOf } from '../../src/package/model/record/record.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import { rejectionMessage } from '../proposal/readiness.ts';
import { isMarked, OWN_TYPES } from './settlement.ts';

const HOUR_MS = 3_600_000;

/** Reports why controllers do not continue with a draft: the commit budget, content that is already published, a rejection, missing reports. */
export const obstacleExplainer: Explainer = {
  explain({ evaluation }, { now, running }) {
    const { revision, record, policy, content } = evaluation;
    const reasons: Reason[] = [];
    const next: string[] = [];
    if (revision.lifecycle !== 'Draft' || revision.problem !== undefined) return {};
    const { budget } = record;
    if (budget !== undefined && budget.commits >= policy.commitBudgetPerHour) {
      const until = Date.parse(budget.since) + HOUR_MS;
      if (now < until) {
        const message = `controllers made ${budget.commits} commits since ${budget.since}, the budget for an hour; they make none before ${timestamp(until)}. Find out what keeps changing the package`;
        reasons.push({ reason: 'BudgetExhausted', message });
      }
    }
    if (record.source !== undefined && record.source.content === content.content) {
      const message = `the content is still that of ${record.source.name}, which is published; no controller proposes it`;
      reasons.push({ reason: 'SameAsSource', message });
      next.push(...repairSteps(revision));
    }
    const rejection = rejectionOf(record, { commit: revision.commit, content: content.content });
    if (rejection !== undefined) reasons.push({ reason: 'Rejected', message: rejectionMessage(rejection) });
    const own = revision.kptfile?.status?.conditions?.filter(({ type = '' }) => OWN_TYPES.includes(type)) ?? [];
    const settled = own.find(({ status }) => status === 'False') ?? own[0];
    if (record.settled?.content !== content.content && (isMarked(evaluation) || settled !== undefined)) {
      const output = settled?.status === 'False' ? `: ${settled.message ?? ''}` : '';
      reasons.push({ reason: 'NotSettled', message: `not every resolver has reported on this content yet${output}` });
      if (!running) next.push(sluiceCommand('up'));
    }
    return { reasons, next };
  },
};
