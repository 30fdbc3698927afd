import type { Kptfile } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../../src/foundation/time/clock.ts';
import { blockingRules, nextRuleChange } from '../../../src/package/kernel/blocking-rules.ts';
import type { PolicySubject } from '../../../src/package/model/revision/package-revision.ts';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import { placeProblem } from '../../../src/package/plan/create/merged-package.ts';
import { lastPublishedAt } from '../../../src/package/plan/read-state.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { lasting } from '../../pull-request/checks/unmet-publication.ts';

/** What makes a merge out of band, or without a publication, at a time, for one package of a pull request that is no proposal. */
export interface RulesAtMerge {
  readonly subject: PolicySubject;
  readonly rules: readonly BlockingRule[];
  /** Why there is no place for it, such as for a package above another one that has a draft; one sentence. */
  readonly problem: string | undefined;
  /** When rules may begin or end to block by themselves, milliseconds since the epoch; undefined if never. */
  readonly changesAt: number | undefined;
}

/** Evaluates them at a time in milliseconds since the epoch. Cheap, and without a request: done again with each poll of the host. */
export function rulesAtMerge(repository: PackageRepository, subject: PolicySubject, now: number): RulesAtMerge {
  const policy = repository.policyFor(subject);
  const published = lastPublishedAt(repository.index.ofPackage(subject.key.package));
  const facts = { name: subject.path, proposal: undefined, lastPublishedAt: published, isUnproposed: true } as const;
  const blocking = blockingRules(facts, policy, timestamp(now));
  const problem = placeProblem(repository, subject.key);
  return { subject, rules: blocking.map(lasting), problem, changesAt: nextRuleChange(policy, blocking, now) };
}

/** The part of a Kptfile that policies select by: the rest would be kept for each pull request. */
export function selectedPart(kptfile: Kptfile | undefined): Kptfile | undefined {
  if (kptfile === undefined) return undefined;
  const { apiVersion, kind, metadata } = kptfile;
  return { apiVersion, kind, ...(metadata === undefined ? {} : { metadata }) };
}
