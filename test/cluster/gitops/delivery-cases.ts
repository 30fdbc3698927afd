import { expect, test } from 'vitest';
import { configMap, definition, namespace, type Scenario } from '../support/gitops/scenario.ts';

const configMapPath = (space: string, name: string) => `/api/v1/namespaces/${space}/configmaps/${name}`;

/** What each engine does with the content of packages, whatever its own objects are called. */
export function deliveryCases(of: () => Scenario): void {
  test('a package is installed, upgraded, rolled back by a pin, and removed', async () => {
    const site = of();
    const place = await site.target('lifecycle', ['life', 'other']);
    const files = {
      'ns.yaml': namespace('life'),
      'a.yaml': configMap('a', 'life', '1'),
      'b.yaml': configMap('b', 'life', '1'),
    };
    await site.publish(place, 'other', 'v1', { 'ns.yaml': namespace('other') }, ['other v1']);
    const first = await site.publish(place, 'life', 'v1', files, ['life v1', 'other v1']);
    await site.synced(place, 'life');
    expect(await site.data('life', 'a')).toEqual({ value: '1' });

    const second = { 'a.yaml': configMap('a', 'life', '2'), 'b.yaml': null, 'c.yaml': configMap('c', 'life', '2') };
    await site.publish(place, 'life', 'v2', second, ['life v2', 'other v1']);
    await site.synced(place, 'life');
    expect(await site.data('life', 'a')).toEqual({ value: '2' });
    expect(await site.data('life', 'c')).toEqual({ value: '2' });
    await site.gone(place, configMapPath('life', 'b'));

    await site.world.patchTarget(place.name, { pins: [{ repository: 'packages', package: 'life', revision: 1 }] });
    await site.world.delivered(place.name, ['life v1', 'other v1']);
    await site.synced(place, 'life');
    expect(await site.data('life', 'a')).toEqual({ value: '1' });
    expect(await site.data('life', 'b')).toEqual({ value: '1' });
    await site.gone(place, configMapPath('life', 'c'));

    await site.world.patchTarget(place.name, {
      pins: [],
      selector: { repositories: ['packages'], packages: ['other'] },
    });
    await site.world.delivered(place.name, ['other v1']);
    await site.gone(place, configMapPath('life', 'a'));
    await site.synced(place, 'other');
    expect(first).toBe('packages.life.v1');
  });

  test('a package without objects is synced, and a package can become empty', async () => {
    const site = of();
    const place = await site.target('empty', ['nothing', 'something']);
    await site.publish(place, 'nothing', 'v1', {}, ['nothing v1']);
    await site.synced(place, 'nothing');
    const some = { 'cm.yaml': configMap('something', 'default', '1') };
    await site.publish(place, 'something', 'v1', some, ['nothing v1', 'something v1']);
    await site.synced(place, 'something');
    await site.publish(place, 'something', 'v2', { 'cm.yaml': null }, ['nothing v1', 'something v2']);
    await site.gone(place, configMapPath('default', 'something'));
    await site.synced(place, 'something');
  });

  test('a definition and an object of its kind in one package, and in two that are published in the wrong order', async () => {
    const site = of();
    const place = await site.target('kinds', ['gadgets', 'widget', 'widget-kind']);
    const both = { 'a-object.yaml': object('Gadget', 'g'), 'z-kind.yaml': definition('engines.example.com', 'Gadget') };
    await site.publish(place, 'gadgets', 'v1', both, ['gadgets v1']);
    await site.synced(place, 'gadgets');
    await site.publish(place, 'widget', 'v1', { 'object.yaml': object('Widget', 'w') }, ['gadgets v1', 'widget v1']);
    await site.refused(place, 'widget', /Widget/);
    const all = ['gadgets v1', 'widget v1', 'widget-kind v1'];
    await site.publish(place, 'widget-kind', 'v1', { 'kind.yaml': definition('engines.example.com', 'Widget') }, all);
    await site.synced(place, 'widget');
    expect(await site.find('/apis/engines.example.com/v1/namespaces/default/widgets/w')).toBeDefined();
  });

  test('nested packages, and packages in folders, are synced with all their objects', async () => {
    const site = of();
    const place = await site.target('nested', ['team/shop']);
    const kptfile = (name: string) => `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`;
    const files = {
      'ns.yaml': namespace('shop'),
      'db/Kptfile': kptfile('db'),
      'db/cm.yaml': configMap('db', 'shop', '1'),
      'db/backup/Kptfile': kptfile('backup'),
      'db/backup/cm.yaml': configMap('backup', 'shop', '1'),
    };
    await site.publish(place, 'team/shop', 'v1', files, ['team/shop v1']);
    await site.synced(place, 'team/shop');
    for (const name of ['db', 'backup']) expect(await site.data('shop', name)).toEqual({ value: '1' });
    const removed = {
      'db/backup/Kptfile': null,
      'db/backup/cm.yaml': null,
      'db/cm.yaml': configMap('db', 'shop', '2'),
    };
    await site.publish(place, 'team/shop', 'v2', removed, ['team/shop v2']);
    await site.synced(place, 'team/shop');
    expect(await site.data('shop', 'db')).toEqual({ value: '2' });
    await site.gone(place, configMapPath('shop', 'backup'));
  });

  test('packages whose paths differ in a slash only are both synced', async () => {
    const site = of();
    const place = await site.target('alike', ['net/upf', 'net-upf']);
    await site.publish(place, 'net/upf', 'v1', { 'cm.yaml': configMap('slash', 'default', '1') }, ['net/upf v1']);
    await site.synced(place, 'net/upf');
    const both = ['net-upf v1', 'net/upf v1'];
    await site.publish(place, 'net-upf', 'v1', { 'cm.yaml': configMap('dash', 'default', '1') }, both);
    for (const [path, name] of [
      ['net/upf', 'slash'],
      ['net-upf', 'dash'],
    ] as const) {
      await site.synced(place, path);
      expect(await site.data('default', name)).toEqual({ value: '1' });
    }
  });

  test('a package moves from one target to another', async () => {
    const site = of();
    const options = (color: string) => ({
      spec: {
        selector: { repositories: ['packages'], packageSelector: { matchLabels: { color } } },
        ...{ allowPrune: true, onRemoval: 'empty' },
      },
    });
    const blue = await site.target('blue', [], options('blue'));
    const green = await site.target('green', [], options('green'));
    const kptfile = (color: string) =>
      `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: mover\n  labels:\n    color: ${color}\n`;
    const files = { Kptfile: kptfile('blue'), 'cm.yaml': configMap('mover', 'default', '1') };
    await site.publish(blue, 'mover', 'v1', files, ['mover v1']);
    await site.synced(blue, 'mover');
    await site.publish(
      green,
      'mover',
      'v2',
      { Kptfile: kptfile('green'), 'cm.yaml': configMap('mover', 'default', '2') },
      ['mover v2'],
    );
    await site.world.delivered('blue', []);
    await site.synced(blue, 'mover');
    await site.synced(green, 'mover');
    expect(await site.data('default', 'mover')).toEqual({ value: '2' });
  });
}

function object(kind: string, name: string): string {
  return `apiVersion: engines.example.com/v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n  namespace: default\nspec:\n  size: 1\n`;
}
