import { expect, test } from 'vitest';
import type { Annotation, Check } from '../../../src/forge/forge.ts';
import { byName, failure, NO_SIGNAL, type Suite } from './forge-host.ts';

/** What every implementation has to do with checks. */
export function describeChecks({ startWithPull, pageSize }: Suite): void {
  test('sets checks by name, writes only what has changed, and leaves the checks of others', async () => {
    const { forge, head, checks } = await startWithPull();
    const first: Check[] = [
      { name: 'sluice/ready', state: 'pending', title: '2 of 3 gates are closed' },
      { name: 'sluice/gate/config.nephio.org/v1.Ready.shop', state: 'failure', title: 'not validated: ünï ✓' },
    ];
    await forge.setChecks(head, first, NO_SIGNAL);
    const set = await checks(head);
    expect(byName(set.current)).toEqual(byName(first));
    await forge.setChecks(head, first, NO_SIGNAL);
    expect((await checks(head)).written).toBe(set.written);
    const second: Check[] = [{ name: 'sluice/ready', state: 'success', title: 'all gates are open' }];
    await forge.setChecks(head, [...second, ...first.slice(1)], NO_SIGNAL);
    const after = await checks(head);
    expect(after.written).toBe(set.written + 1);
    expect(byName(after.current)).toEqual(byName([...second, ...first.slice(1)]));
    // A check that has ended can begin again, and end in another way, or with another title.
    for (const next of ['pending', 'failure', 'success'] as const) {
      const check: Check = { name: 'sluice/ready', state: next, title: `now ${next}` };
      await forge.setChecks(head, [check], NO_SIGNAL);
      expect(byName((await checks(head)).current)).toEqual(byName([check, ...first.slice(1)]));
    }
    const titled: Check = { name: 'sluice/ready', state: 'success', title: 'another title' };
    await forge.setChecks(head, [titled], NO_SIGNAL);
    expect((await checks(head)).current).toContainEqual(titled);
  });

  test('replaces a check by one with any characters in its title', async () => {
    const { forge, head, checks } = await startWithPull();
    const check: Check = { name: 'sluice/ready', state: 'success', title: 'all gates are open' };
    await forge.setChecks(head, [check], NO_SIGNAL);
    const frozen: Check = { ...check, state: 'pending', title: `🎄 holidays ${'😀'.repeat(200)}` };
    await forge.setChecks(head, [frozen], NO_SIGNAL);
    const after = await checks(head);
    expect(after.current).toMatchObject([
      { state: 'pending', title: expect.stringMatching(/^(?:🎄|�) holidays (?:😀|�)+$/u) },
    ]);
    await forge.setChecks(head, [frozen], NO_SIGNAL);
    expect((await checks(head)).written).toBe(after.written);
  });

  test('shows annotations of a check at their lines, or links to the first one, and replaces them', async () => {
    const { forge, head, checks, annotations: shownOf } = await startWithPull();
    const remark = (at: number): Annotation => ({
      ...{ path: `shop/ü b/#${at}.yaml`, line: at + 1, level: at === 0 ? 'failure' : 'warning' },
      ...{ title: 'InvalidYaml', message: `no resource: ${at}` },
    });
    const check: Check = { name: 'sluice/ready', state: 'failure', title: 'not valid' };
    const expectShown = async (annotations: readonly Annotation[]) => {
      const shown = await shownOf(head, check.name);
      if (typeof shown !== 'string') return expect(shown).toEqual(annotations);
      const { path = '', line } = annotations[0] ?? {};
      const at = path.split('/').map(encodeURIComponent).join('/');
      return expect(shown).toMatch(line === undefined ? /^$/ : new RegExp(`^https?://.*/${head}/${at}#L${line}$`));
    };
    const many = Array.from({ length: 120 }, (_, at) => remark(at));
    for (const annotations of [many, many.slice(1), [remark(7), remark(8)], []]) {
      await forge.setChecks(head, [{ ...check, annotations }], NO_SIGNAL);
      await expectShown(annotations);
      const { written, current } = await checks(head);
      expect(current).toEqual([check]);
      await forge.setChecks(head, [{ ...check, annotations }], NO_SIGNAL);
      expect((await checks(head)).written).toBe(written);
    }
    // They stay when the check ends in another way.
    await forge.setChecks(head, [{ ...check, annotations: many }], NO_SIGNAL);
    await forge.setChecks(head, [{ ...check, state: 'success', annotations: many }], NO_SIGNAL);
    await expectShown(many);
    expect((await checks(head)).current).toEqual([{ ...check, state: 'success' }]);
  });

  test('shows the text of a check, or links to its page, shortened and changed in place', async () => {
    const { forge, head, checks, annotations: shownOf, text: textOf } = await startWithPull();
    const check: Check = { name: 'sluice/ready', state: 'pending', title: '1 of 1 gates closed' };
    const url = 'https://git.example.com/owner/apps/pulls/1';
    for (const text of ['| Gate |\n|---|\n| `a` |', '📦'.repeat(20_000), '']) {
      await forge.setChecks(head, [{ ...check, text, url }], NO_SIGNAL);
      const shown = await textOf(head, check.name);
      if (shown === undefined) expect(await shownOf(head, check.name)).toBe(url);
      else if (text.length < 1000) expect(shown).toBe(text);
      else expect(shown).toMatch(/^📦{1000,}$/u);
      const { written, current } = await checks(head);
      expect(current).toEqual([check]);
      await forge.setChecks(head, [{ ...check, text, url }], NO_SIGNAL);
      expect((await checks(head)).written).toBe(written);
    }
  });

  test('sets more checks than one page has once, shortens their titles, and reports an unknown commit', async () => {
    const { forge, head, checks } = await startWithPull();
    const many: Check[] = Array.from({ length: pageSize + 5 }, (_, at) => ({
      name: `sluice/gate/type-${at}`,
      state: 'pending',
      title: '📦'.repeat(1000),
    }));
    await forge.setChecks(head, many, NO_SIGNAL);
    const set = await checks(head);
    expect(set.current).toHaveLength(many.length);
    for (const { title } of set.current) expect(title).toMatch(/^(?:📦|�){50,}$/u);
    await forge.setChecks(head, many, NO_SIGNAL);
    expect((await checks(head)).written).toBe(set.written);
    const unknown = 'f'.repeat(40);
    expect(await failure(forge.setChecks(unknown, many, NO_SIGNAL))).toMatch(/^(InvalidInput|NotFound): /);
  });
}
