import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { skipFor } from '../../support/skip.ts';
import { ArgoCd } from '../support/gitops/argocd.ts';
import { ArgoCdEngine } from '../support/gitops/argocd-engine.ts';
import { argoCdProgram } from '../support/gitops/argocd-program.ts';
import { GitOpsWorld } from '../support/gitops/gitops-world.ts';
import { redisProgram } from '../support/gitops/redis-program.ts';
import { configMap, Scenario } from '../support/gitops/scenario.ts';
import { argoCdTriggers } from '../support/gitops/triggers.ts';
import { clusterPrograms } from '../support/programs.ts';
import { argoCdStates } from './argocd-states.ts';
import { corpusCase } from './corpus-case.ts';
import { deliveryCases } from './delivery-cases.ts';
import { differenceCases } from './difference-cases.ts';
import { faultCases } from './fault-cases.ts';
import { quickStartCase } from './quick-start-case.ts';
import { signatureCases } from './signature-cases.ts';
import { timelineCase } from './timeline-case.ts';
import { triggerCases } from './trigger-cases.ts';
import { waveCase } from './wave-case.ts';

const without = inject('serverMissing');
const argocd = without === '' ? await argoCdProgram((line) => console.log(line)) : { missing: without };
const redis = await redisProgram();
const missing = ('missing' in argocd && argocd.missing) || ('missing' in redis && redis.missing);

describe('Argo CD syncs what Sluice delivers', { ...skipFor(missing), concurrent: true, timeout: 300_000 }, () => {
  let world: GitOpsWorld;
  let engine: ArgoCd;
  let site: Scenario;
  /** Keeps the logs, of a start that failed too. */
  let failed = true;

  beforeAll(async () => {
    const cluster = await clusterPrograms(() => undefined);
    if ('missing' in cluster || 'missing' in argocd || 'missing' in redis) throw new Error('the programs are missing');
    world = await GitOpsWorld.start(cluster);
    const logs = join(world.plane.folder, 'logs');
    engine = await ArgoCd.start({ cluster, argocd, redis }, world.plane.kubeconfig, logs);
    site = new Scenario(world, new ArgoCdEngine(world.cluster));
    failed = false;
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === 'fail';
  });
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await world?.stop({ keepLogs: failed });
    if (failed) console.log(`argocd: logs: ${world?.plane.folder}/logs`);
  });

  timelineCase(() => site);
  triggerCases(
    () => site,
    () => argoCdTriggers(engine),
  );
  waveCase(
    () => site,
    () => argoCdTriggers(engine),
  );
  quickStartCase(() => site);
  deliveryCases(() => site);
  faultCases(() => site);
  differenceCases(() => site, { lastFolder: 'pruned', shared: /SharedResourceWarning/ });
  corpusCase(() => site, { waiting: ['cert-issuers', 'echo', 'ghost'] });
  signatureCases(
    () => site,
    () => ({ trust: (keyId, armored) => engine.trustKey(keyId, armored), refusal: /signature|GnuPG|signed/i }),
  );
  argoCdStates(() => site);

  test('an object without a namespace is created in the namespace of the destination', async () => {
    const place = await site.target('spaces', ['spaceless']);
    const spaceless = { 'cm.yaml': configMap('spaceless', 'default', '1').replace('  namespace: default\n', '') };
    await site.publish(place, 'spaceless', 'v1', spaceless, ['spaceless v1']);
    await site.synced(place, 'spaceless');
    expect(await site.data('default', 'spaceless')).toEqual({ value: '1' });
  });
});
