import { describe, expect, test } from 'vitest';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { toJson, toYaml } from './structured.ts';
import { table } from './table.ts';
import { type OutputStream, Terminal } from './terminal.ts';

describe('table', () => {
  test('columns are as wide as their longest cell, the last one is not padded', () => {
    const text = table(
      ['Name', 'Ready'],
      [
        ['a-long-name', 'True'],
        ['b', 'False'],
      ],
    );
    expect(text).toBe('NAME          READY\na-long-name   True\nb             False\n');
  });

  test('headers can be left out; escapes in cells are counted as they are shown', () => {
    expect(
      table(
        ['A', 'B'],
        [
          ['\u001b[1m', 'x'],
          ['ab', 'y'],
        ],
        { headers: false },
      ),
    ).toBe('\\x1b[1m   x\nab        y\n');
  });

  test('wide characters take two columns', () => {
    expect(
      table(
        ['A', 'B'],
        [
          ['名前', 'x'],
          ['abcd', 'y'],
        ],
        { headers: false },
      ),
    ).toBe('名前   x\nabcd   y\n');
  });
});

test('similar names, the nearest first', () => {
  const names = ['packages.web-shop.v1', 'packages.upf-edge.v1', 'packages.web-shop.v2'];
  expect(nearMisses('packages.webshop.v1', names)).toEqual(['packages.web-shop.v1', 'packages.web-shop.v2']);
  expect(nearMisses('web-shop', names)).toEqual(['packages.web-shop.v1', 'packages.web-shop.v2']);
  expect(nearMisses('zzz', names)).toEqual([]);
});

describe('structured output', () => {
  const hostile = { name: 'a\u202e\u009b\u2028b\u001b' };

  test('prints the same text and does not control the terminal', () => {
    for (const text of [toJson(hostile), toYaml(hostile)]) {
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028]/);
      expect(JSON.parse(text)).toEqual(hostile);
    }
    expect(toYaml({ a: { b: [1, 'x: y'], c: undefined } })).toBe("a:\n  b:\n    - 1\n    - 'x: y'\n");
  });
});

describe('colour', () => {
  const stream = (isTTY: boolean): OutputStream => ({ write: () => true, isTTY });
  const styled = (isTTY: boolean, environment: NodeJS.ProcessEnv) =>
    new Terminal(stream(isTTY), stream(isTTY), environment).style('red', 'x') !== 'x';

  test('only on a terminal, unless the environment overrides it', () => {
    expect(styled(true, {})).toBe(true);
    expect(styled(false, {})).toBe(false);
    expect(styled(true, { TERM: 'dumb' })).toBe(false);
    expect(styled(true, { NO_COLOR: '1' })).toBe(false);
    expect(styled(true, { NO_COLOR: '1', FORCE_COLOR: '1' })).toBe(false);
    expect(styled(false, { FORCE_COLOR: '1' })).toBe(true);
    expect(styled(true, { FORCE_COLOR: '0' })).toBe(false);
  });
});
