import fc from 'fast-check';
import { loadAll } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { runs } from '../../../../test/support/runs.ts';
import { setKrmStatus } from './krm-edit.ts';

const STATUS = { prefix: '10.0.0.10/24', gateway: '10.0.0.1' };
const LINES = 'status:\n  prefix: 10.0.0.10/24\n  gateway: 10.0.0.1\n';
const set = (text: string, status: Record<string, unknown> = STATUS, index = 0) =>
  setKrmStatus('claim.yaml', text, index, status);
const remove = (text: string) => setKrmStatus('claim.yaml', text, 0, undefined);

describe('setKrmStatus', () => {
  test('adds a status below the last field, behind its comments, and before the next document', () => {
    const head = '# a claim\nkind: IPClaim   # spaces stay\nspec:\n    kind: "network"\n    # index: 4\n';
    const tail = '\n# about the next\n---\nkind: Other\nstatus: {x: 1}\n';
    expect(set(head + tail)).toBe(head + LINES + tail);
  });

  test('changes only the requested document', () => {
    const text = 'kind: A\n---\n# only a comment\n---\nkind: B # b\n---\nkind: C\n';
    expect(set(text, STATUS, 2)).toBe(`kind: A\n---\n# only a comment\n---\nkind: B # b\n${LINES}---\nkind: C\n`);
    expect(() => set(text, STATUS, 1)).toThrow(/no object at place 1/);
  });

  test('replaces a status in place, and keeps comments after it', () => {
    const old = 'status: # old\n  prefix: 1.2.3.4/32\n\n  conditions:\n  - type: Ready # yes\n';
    const rest = '  # indented comment\n# outer comment\nspec: {a: 1}\n';
    expect(set(`kind: A\n${old}${rest}`)).toBe(`kind: A\n${LINES}${rest}`);
    expect(remove(`kind: A\n${old}${rest}`)).toBe(`kind: A\n${rest}`);
  });

  test.each([
    'status:\n',
    'status: {}\n',
    'status: ~ # none\n',
    'status:\n  note: |\n    a\n    b\n\n',
    '"status":\n  a: [1,\n    2]\n',
  ])('replaces %j', (old) => {
    const tail = 'spec:\n  a: 1\n';
    expect(set(`kind: A\n${old}${tail}`).replace('\n\nspec', '\nspec')).toBe(`kind: A\n${LINES}${tail}`);
  });

  test('keeps CRLF', () => {
    const text = 'kind: A\r\nspec:\r\n  a: 1 # x\r\n---\r\nkind: B\r\n';
    const changed = set(text);
    expect(changed).toBe(`kind: A\r\nspec:\r\n  a: 1 # x\r\n${LINES.replaceAll('\n', '\r\n')}---\r\nkind: B\r\n`);
    expect(remove(changed)).toBe(text);
  });

  test.each(['\n', '\r\n'])('keeps a missing final newline with line ends %j', (eol) => {
    const text = ['kind: A', 'spec:', '  a: 1'].join(eol);
    const changed = set(text);
    expect(changed).toBe(text + eol + LINES.trimEnd().replaceAll('\n', eol));
    expect(set(changed, { prefix: 'x' })).toBe([text, 'status:', '  prefix: x'].join(eol));
    expect(remove(changed)).toBe(text);
  });

  test('an equal status stays as it is written', () => {
    const text = 'kind: A\nstatus: {gateway: \'10.0.0.1\', prefix: "10.0.0.10/24"} # flow\n';
    expect(set(text)).toBe(text);
    expect(remove('kind: A\n')).toBe('kind: A\n');
  });

  test('an indented document keeps its column', () => {
    expect(set('---\n  kind: A\n  spec: 1\n...\n')).toBe(
      '---\n  kind: A\n  spec: 1\n  status:\n    prefix: 10.0.0.10/24\n    gateway: 10.0.0.1\n...\n',
    );
  });

  test('texts that YAML would read as another type are quoted', () => {
    const status = { a: 'yes', b: '012', c: '1:20', d: 'null', e: '', f: '#', g: 'x: y', h: 'line\nline' };
    expect(loadAll(set('kind: A\n', status))).toEqual([{ kind: 'A', status }]);
    expect(set('kind: A\n', { a: 'yes' })).toContain('"yes"');
  });

  test.each([
    ['flow style', '{"kind": "A", "spec": {}}\n', /claim.yaml:1: .*not written as a block/],
    ['an anchor', 'kind: A\nspec: &s {a: 1}\nother: *s\n', /claim.yaml:3: .*anchor/],
    ['an explicit key', 'kind: A\n? status\n: a: 1\n', /claim.yaml:2: .*does not begin a line/],
    ['no YAML', 'kind: A\n\tb: {{ .Values }}\n', /^claim.yaml: /],
    ['a list', '- kind: A\n', /no object at place 0/],
    [
      'a block text that the end of the file closes',
      'kind: A\nnote: |\n  text',
      /claim.yaml:2: .*ends inside a block text/,
    ],
  ])('refuses %s', (_what, text, message) => {
    expect(() => set(text)).toThrow(message);
  });

  test('an alias bomb is refused at once', () => {
    const levels = Array.from({ length: 40 }, (_, level) => `a${level + 1}: &a${level + 1} [*a${level}, *a${level}]`);
    expect(() => set(`kind: A\na0: &a0 x\n${levels.join('\n')}\n`)).toThrow(/anchor/);
  });

  test('property: the text has the intended value, and no other line changes', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/).filter((text) => text !== 'status');
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
    const value = fc.letrec((tie) => ({
      node: fc.oneof({ depthSize: 'small' }, scalar, fc.array(tie('node'), { maxLength: 3 }), tie('map')),
      map: fc.dictionary(name, tie('node'), { maxKeys: 3 }),
    }));
    const object = fc.record({ kind: name, body: value.map, old: fc.option(value.map) });
    const statusOf = fc.option(fc.dictionary(name, scalar, { maxKeys: 3 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.array(object, { minLength: 1, maxLength: 3 }),
        fc.nat(),
        statusOf,
        fc.boolean(),
        fc.boolean(),
        (objects, pick, status, crlf, cut) => {
          const index = pick % objects.length;
          const documents = objects.map(({ kind, body, old }) => ({ kind, ...body, ...(old ? { status: old } : {}) }));
          let text = documents.map((document) => `# about it\n${stringify(document, { lineWidth: 0 })}`).join('---\n');
          if (crlf) text = text.replaceAll('\n', '\r\n');
          if (cut) text = text.trimEnd();
          const before = loadAll(text) as Record<string, unknown>[];
          let after: string;
          try {
            after = setKrmStatus('claim.yaml', text, index, status);
          } catch (error) {
            // Only a block text at the very end of a file without a final newline cannot be followed by a line.
            expect(String(error)).toMatch(cut ? /ends inside a block text/ : /never/);
            return;
          }
          const expected = before.map((document, place) => {
            if (place !== index) return document;
            const { status: _old, ...rest } = document;
            return status === undefined ? rest : { ...rest, status };
          });
          expect(loadAll(after)).toEqual(expected);
          const kept = after.split('\n').filter((line) => text.split('\n').includes(line));
          expect(kept.filter((line) => line.startsWith('# about it')).length).toBe(documents.length);
        },
      ),
      { numRuns: runs(400) },
    );
  });
});
