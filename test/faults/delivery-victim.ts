// A process that delivers to a target, and stops at a numbered place to be killed. The status of the target outlives it in a file.
// Arguments: folder of its data, path of the repository of packages, address of the target, number of the place (0: never).
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { NativeRepository } from '../../src/git/engines/native/native-repository.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn } from '../support/delivery.ts';
import { fixture } from '../support/fixture.ts';
import { folderTrust } from '../support/trust.ts';

const [folder = '', packages = '', url = '', place = '0'] = process.argv.slice(2);
const statusFile = join(folder, 'status.json');
const names: string[] = [];

/** Stops before or after a step, where the number of the place is this one. */
function here(name: string): void {
  names.push(name);
  if (names.length !== Number(place)) return;
  process.stdout.write('here\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>;

function stopAround(prototype: object, method: string, after: (args: readonly unknown[]) => void = () => undefined) {
  const inner = Reflect.get(prototype, method) as Method;
  Reflect.set(prototype, method, async function (this: unknown, ...args: unknown[]) {
    here(`before ${method}`);
    const result = await inner.apply(this, args);
    after(args);
    here(`after ${method}`);
    return result;
  });
}

const world = await fixture(systemClock, await folderTrust(join(folder, 'trust')));
await world.register('apps', { repo: packages });
const target = await world.client.create(deliveryTargetKind, {
  metadata: { name: 'edge' },
  spec: { selector: {}, git: { repo: url } },
});
if (existsSync(statusFile)) {
  const status = JSON.parse(readFileSync(statusFile, 'utf8')) as typeof target.status;
  await world.client.updateStatus(deliveryTargetKind, { ...target, ...(status === undefined ? {} : { status }) });
}
for (const method of ['listRemoteRefs', 'fetch', 'editTree', 'writeCommit', 'push'])
  stopAround(NativeRepository.prototype, method);
stopAround(RegistryClient.prototype, 'updateStatus', ([, object]) => {
  const { status } = object as typeof target;
  writeFileSync(`${statusFile}.new`, JSON.stringify(status));
  renameSync(`${statusFile}.new`, statusFile);
});
const controller = controllerOn(world, { dataFolder: join(folder, 'data') });
// The second time nothing is left to do.
for (let turn = 0; turn < 2; turn += 1) {
  await controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  if (turn === 0) process.stdout.write(`places ${names.length} ${names.join(', ')}\n`);
}
await world[Symbol.asyncDispose]();
