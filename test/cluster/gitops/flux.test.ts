import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { skipFor } from '../../support/skip.ts';
import { capture } from '../support/gitops/capture.ts';
import { Flux } from '../support/gitops/flux.ts';
import { FluxEngine } from '../support/gitops/flux-engine.ts';
import { fluxDefinitions } from '../support/gitops/flux-program.ts';
import { GitOpsWorld } from '../support/gitops/gitops-world.ts';
import { ReceiverStandIn } from '../support/gitops/receiver-stand-in.ts';
import { configMap, Scenario } from '../support/gitops/scenario.ts';
import { fluxTriggers } from '../support/gitops/triggers.ts';
import { clusterPrograms } from '../support/programs.ts';
import { corpusCase } from './corpus-case.ts';
import { deliveryCases } from './delivery-cases.ts';
import { differenceCases } from './difference-cases.ts';
import { faultCases } from './fault-cases.ts';
import { fluxStates } from './flux-states.ts';
import { quickStartCase } from './quick-start-case.ts';
import { signatureCases } from './signature-cases.ts';
import { timelineCase } from './timeline-case.ts';
import { triggerCases } from './trigger-cases.ts';

const definitions = await fluxDefinitions();
const missing = inject('serverMissing') || ('missing' in definitions && definitions.missing);

const SIGNED_SOURCE = '/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/signed';

describe('Flux syncs what Sluice delivers', { ...skipFor(missing), concurrent: true, timeout: 300_000 }, () => {
  let world: GitOpsWorld;
  let flux: Flux;
  let receiver: ReceiverStandIn;
  let site: Scenario;
  /** Keeps the logs, of a start that failed too. */
  let failed = true;

  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs || 'missing' in definitions) throw new Error('the programs are missing');
    world = await GitOpsWorld.start(programs);
    const log = join(world.plane.folder, 'logs', 'kustomize-controller.log');
    flux = await Flux.start(programs, world.plane.kubeconfig, definitions, log);
    receiver = await ReceiverStandIn.start(world.plane.kubeconfig);
    site = new Scenario(world, new FluxEngine(world.cluster));
    failed = false;
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === 'fail';
  });
  afterAll(async () => {
    await receiver?.[Symbol.asyncDispose]();
    await flux?.[Symbol.asyncDispose]();
    await world?.stop({ keepLogs: failed });
    if (failed) console.log(`flux: logs: ${world?.plane.folder}/logs`);
  });

  timelineCase(() => site);
  triggerCases(
    () => site,
    () => fluxTriggers(receiver),
  );
  quickStartCase(() => site);
  deliveryCases(() => site);
  faultCases(() => site);
  differenceCases(() => site, { lastFolder: 'kept', shared: /BuildFailed.*already registered id/ });
  // A package that is not healthy would hold the whole target.
  corpusCase(() => site, { waiting: [], follow: { spec: { wait: false } } });
  signatureCases(
    () => site,
    () => ({
      trust: async () => undefined,
      refusal: /InvalidCommitSignature/,
      refused: async () => capture('flux/wrong-signature-source', await site.find(SIGNED_SOURCE)),
    }),
  );
  fluxStates(() => site);

  test('an object without a namespace is refused with its whole target', async () => {
    const place = await site.target('spaces', ['spaced', 'spaceless']);
    await site.publish(place, 'spaced', 'v1', { 'cm.yaml': configMap('spaced', 'default', '1') }, ['spaced v1']);
    await site.synced(place, 'spaced');
    const spaceless = { 'cm.yaml': configMap('spaceless', 'default', '1').replace('  namespace: default\n', '') };
    await site.publish(place, 'spaceless', 'v1', spaceless, ['spaced v1', 'spaceless v1']);
    const { object } = await site.refused(place, 'spaceless', /namespace not specified/);
    expect(object?.status).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining({ reason: 'ReconciliationFailed' })]),
    });
  });
});
