import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { functionPolicyKind } from '../../resource/kinds/sluice/function-policy.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from './session.ts';

const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';
const UNUSED = new AbortController().signal;

let cli: CliFixture;
let session: Session;
/** Written by the program. */
let trace: string;
beforeEach(async () => {
  cli = await cliFixture();
  const programs = join(cli.data, '..', 'programs');
  mkdirSync(programs);
  trace = join(programs, 'trace');
  writeFileSync(join(programs, 'fn'), `#!/bin/sh\necho ran >> "${trace}"\ncat\n`);
  chmodSync(join(programs, 'fn'), 0o700);
  session = await Session.open({
    ...{ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true, network: DEFAULT_NETWORK },
    functions: { programs, containers: true, requireDigest: false },
  });
});
afterEach(async () => {
  await session.close();
  await cli[Symbol.asyncDispose]();
});

/** How often the program was executed. */
function ran(): number {
  return existsSync(trace) ? readFileSync(trace, 'utf8').trim().split('\n').length : 0;
}

function request(step: string) {
  const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\npipeline:\n  mutators:\n    - ${step}\n`;
  const files = new Map(
    Object.entries({ Kptfile: kptfile, 'map.yaml': MAP }).map(([name, text]) => [name, Buffer.from(text)]),
  );
  return { files, namespace: 'default', validatorConditions: new Map<string, string>(), signal: UNUSED };
}

test('what forks propose executes no program that the server may execute otherwise', async () => {
  const step = 'exec: fn';
  expect((await session.renderer.render(request(step)))?.failure).toBeUndefined();
  expect(ran()).toBe(1);
  const { failure, unavailable } = (await session.restrictedRenderer.render(request(`${step} again`))) ?? {};
  expect(failure).toMatch(
    /exec "fn again" cannot be run: programs are not allowed; start the server with --function-programs/,
  );
  expect(unavailable).toBe(true);
  expect(ran()).toBe(1);
});

test('nor one that a policy names in the place of an image', async () => {
  const image = 'example.com/fn:v1';
  await session.client.create(functionPolicyKind, {
    metadata: { name: 'programs', namespace: 'default' },
    spec: { rules: [{ image: 'example.com/fn', exec: 'fn' }] },
  });
  const step = `image: ${image}`;
  expect((await session.renderer.render(request(step)))?.failure).toBeUndefined();
  expect(ran()).toBe(1);
  expect((await session.restrictedRenderer.render(request(step)))?.failure).toMatch(/programs are not allowed/);
  expect(ran()).toBe(1);
});

test('nor a container', async () => {
  const { failure } = (await session.restrictedRenderer.render(request('image: example.com/fn:v1'))) ?? {};
  expect(failure).toMatch(/start the server with --containers/);
});
