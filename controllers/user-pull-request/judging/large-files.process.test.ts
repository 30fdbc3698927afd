import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  eachUserPulls,
  GATES,
  KPTFILE,
  LABELS,
  MAP,
  type UserPullBench,
} from '../../../test/support/user-pull-bench.ts';

/** More than a Kptfile may have. */
const PADDING = `# ${'x'.repeat(300 * 1024)}\n`;
const FIELD = '          description: what the field is for, and which values it may have\n          type: string\n';
/** As those of large operators. */
const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webs.example.com
spec:
  properties:
${Array.from({ length: 3000 }, (_, one) => `        field${one}:\n${FIELD}`).join('')}`;

describe('large files of a pull request', () => {
  const open = eachUserPulls();
  let at: UserPullBench;
  beforeEach(async () => {
    at = open();
    await at.policy({ publishOn: 'merge' });
  });
  const ready = (commit: string) => at.titles(commit)['sluice/ready'];
  const push = async (files: Readonly<Record<string, string>>) => {
    await at.world.push(at.path, files);
    await at.world.store.repository('apps').refresh();
  };

  test('are searched for mistakes as small ones: a valid definition is published, and a broken one out of band', async () => {
    expect(DEFINITION.length).toBeGreaterThan(300 * 1024);
    const files = { 'web/Kptfile': KPTFILE(), 'web/definition.yaml': DEFINITION, 'web/map.yaml': MAP };
    const valid = await at.pull(files);
    await at.poll();
    expect(ready(valid)).toBe('success: 1 package checked: no errors, no closed gates');
    expect(at.comment(1)).not.toContain('**warning**');
    await at.merge(1, 'bob');
    await at.poll();
    expect(at.world.store.find('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    const broken = await at.pull({ 'web/definition.yaml': `${DEFINITION}  broken: [\n` }, { branch: 'second' });
    await at.poll();
    expect(ready(broken)).toMatch(/^failure: 1 error: web\/definition\.yaml:9007: not valid YAML/);
    await at.merge(2, 'bob');
    await at.poll();
    expect(at.world.store.find('apps.web.merge-2')?.outOfBand?.message).toContain('Rendered');
  });

  test('are published in band once there is time to search them', async () => {
    await at.pull({ 'web/Kptfile': KPTFILE(), 'web/definition.yaml': DEFINITION, 'web/map.yaml': MAP });
    await at.merge(1, 'bob');
    const over = AbortSignal.abort(new Error('over'));
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    const spy = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => (ms === 20_000 ? over : timeout(ms)));
    await expect(at.poll()).rejects.toThrow('web/definition.yaml: it cannot be searched for mistakes');
    spy.mockRestore();
    expect(at.world.store.find('apps.web.merge-1')).toBeUndefined();
    await at.poll();
    expect(at.world.store.find('apps.web.merge-1')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  });

  test('are found after many others', async () => {
    const many = Array.from({ length: 6 }, (_, one) => [`web/${one}.yaml`, `${PADDING.slice(0, 200 * 1024)}\n${MAP}`]);
    const commit = await at.pull({
      ...{ 'web/Kptfile': KPTFILE(), ...Object.fromEntries(many), 'web/zz.yaml': `a: [\n${PADDING}` },
    });
    await at.poll();
    const { annotations = [] } = at.forge.checks.get(commit)?.get('sluice/ready') ?? {};
    expect(annotations.map(({ path, title }) => `${path} ${title}`)).toEqual(['web/zz.yaml InvalidYaml']);
  });

  test('a Kptfile that cannot be read does not drop its gates unseen, whatever it is padded with', async () => {
    await push({ 'web/Kptfile': KPTFILE(GATES), 'web/map.yaml': MAP });
    const commit = await at.pull({ 'web/Kptfile': KPTFILE(GATES) + PADDING, 'web/map.yaml': `${MAP}# other\n` });
    await at.poll();
    expect(ready(commit)).toMatch(/^failure: 1 error: web\/Kptfile:1: The file has more than 262144 bytes/);
    expect(at.comment(1)).toContain('Its Kptfile cannot be read, so that its gates are unknown.');
  });

  test('a Kptfile that the branch does not change fails its check too, if it cannot be read', async () => {
    await push({ 'web/Kptfile': KPTFILE(GATES) + PADDING, 'api/Kptfile': `${KPTFILE(LABELS)}kind: Kptfile\n` });
    const commit = await at.pull({ 'web/map.yaml': MAP, 'api/map.yaml': MAP });
    await at.poll();
    const { state, annotations = [] } = at.forge.checks.get(commit)?.get('sluice/ready') ?? {};
    expect(state).toBe('failure');
    expect(annotations.map(({ path }) => path)).toEqual(['api/Kptfile', 'web/Kptfile']);
  });
});
