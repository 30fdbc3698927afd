import { describe, expect, test, vi } from 'vitest';
import {
  applyKptfileEdit,
  editKptfile,
  type KptfileEdit,
  KptfileEditError,
  MAX_CONDITIONS,
  MAX_GATES,
  MAX_KPTFILE_BYTES,
  readKptfile,
} from '../index.ts';
import { SourceText } from '../yaml/source-text.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n';

function errorOf(text: string, edit: KptfileEdit): KptfileEditError {
  try {
    editKptfile(text, [edit]);
  } catch (error) {
    if (error instanceof KptfileEditError) return error;
    throw error;
  }
  throw new Error('was edited');
}

const TRUE_A: KptfileEdit = { op: 'setCondition', condition: { type: 'A', status: 'True' } };

describe('style of what is added', () => {
  test('a condition in a new list: the status is quoted, as kpt requires', () => {
    const edit: KptfileEdit = {
      op: 'setCondition',
      condition: {
        type: 'req.nephio.org/v1alpha1.Interface.n3',
        status: 'False',
        reason: 'Pending',
        message: 'no: #1',
      },
    };
    expect(editKptfile(HEAD, [edit])).toBe(`${HEAD}status:
  conditions:
    - type: req.nephio.org/v1alpha1.Interface.n3
      status: "False"
      reason: Pending
      message: "no: #1"
`);
  });

  test('a further condition gets order, dash, quotes and line breaks of the existing ones', () => {
    const text =
      `${HEAD}status:\n  conditions:\n  -   message: done\n      status: 'True'\n      type: B # last`.replaceAll(
        '\n',
        '\r\n',
      );
    const result = editKptfile(text, [{ op: 'setCondition', condition: { type: 'A', status: 'True', message: 'm' } }]);
    expect(result).toBe(`${text}\r\n  -   message: m\r\n      status: 'True'\r\n      type: A`);
  });

  test('new lists have the list style of the file', () => {
    const compact = `${HEAD}pipeline:\n  mutators:\n  - image: a\n`;
    expect(editKptfile(compact, [TRUE_A])).toBe(`${compact}status:\n  conditions:\n  - type: A\n    status: "True"\n`);
  });

  test('fields have the positions of kpt', () => {
    const text = `${HEAD}pipeline: {}\n`;
    expect(editKptfile(text, [{ op: 'addGate', conditionType: 'A' }])).toBe(
      `${HEAD}info:\n  readinessGates:\n    - conditionType: A\npipeline: {}\n`,
    );
  });

  test('sorted labels stay sorted, others grow at the end', () => {
    const edit: KptfileEdit = { op: 'setLabel', key: 'b', value: '1' };
    expect(editKptfile(`${HEAD}  labels:\n    a: x\n    c: y\n`, [edit])).toBe(
      `${HEAD}  labels:\n    a: x\n    b: "1"\n    c: y\n`,
    );
    expect(editKptfile(`${HEAD}  labels:\n    c: x\n    a: y\n`, [edit])).toBe(
      `${HEAD}  labels:\n    c: x\n    a: y\n    b: "1"\n`,
    );
  });

  test('JSON stays JSON', () => {
    const text = '{\n  "apiVersion": "kpt.dev/v1",\n  "kind": "Kptfile",\n  "info": {"site": "x"}\n}\n';
    const result = editKptfile(text, [{ op: 'addGate', conditionType: 'A' }, TRUE_A]);
    expect(JSON.parse(result)).toEqual({
      apiVersion: 'kpt.dev/v1',
      kind: 'Kptfile',
      info: { site: 'x', readinessGates: [{ conditionType: 'A' }] },
      status: { conditions: [{ type: 'A', status: 'True' }] },
    });
    expect(result.split('\n').slice(0, 3)).toEqual(text.split('\n').slice(0, 3));
  });

  test('in flow style, text that libyaml misreads is quoted', () => {
    const text = `${HEAD}  labels: {x: y}\n`;
    const edits: KptfileEdit[] = ['a?b', 'a:b', 'plain text'].map((value, index) => ({
      op: 'setLabel',
      key: `k${index}`,
      value,
    }));
    expect(editKptfile(text, edits)).toBe(`${HEAD}  labels: {x: y, k0: "a?b", k1: "a:b", k2: plain text}\n`);
  });

  test('empty braces, null and nothing are filled, comments stay', () => {
    for (const empty of ['', ' {}', ' ~', ' null']) {
      expect(editKptfile(`${HEAD}status:${empty} # by controllers\n`, [TRUE_A])).toBe(
        `${HEAD}status: # by controllers\n  conditions:\n    - type: A\n      status: "True"\n`,
      );
    }
  });
});

describe('changes in place', () => {
  test('quotes and comments of a changed value stay', () => {
    const text = `${HEAD}status:\n  conditions:\n  # first\n  - message: 'not yet' # why\n    status: 'False'\n    type: A\n    # last\n`;
    const edit: KptfileEdit = { op: 'setCondition', condition: { type: 'A', status: 'True', message: "it's done" } };
    expect(editKptfile(text, [edit])).toBe(text.replace("'not yet'", "'it''s done'").replace("'False'", "'True'"));
  });

  test('the kpt-merge comment stays on its line', () => {
    const text = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: # kpt-merge: /a\n  name: a\n';
    const result = editKptfile(text, [
      { op: 'setName', name: 'b' },
      { op: 'setAnnotation', key: 'k', value: 'true' },
    ]);
    expect(result).toBe(`${text.replace('name: a', 'name: b')}  annotations:\n    k: "true"\n`);
  });

  test('a block text becomes another one, or a plain text', () => {
    const text = `${HEAD}info:\n  description: | # long\n      One.\n\n      Two.\n  site: x\n`;
    const set = (value: string): string => editKptfile(text, [{ op: 'setInfo', field: 'description', value }]);
    expect(set('Three.\nFour.')).toBe(`${HEAD}info:\n  description: |- # long\n      Three.\n      Four.\n  site: x\n`);
    expect(set('short')).toBe(`${HEAD}info:\n  description: short # long\n  site: x\n`);
  });

  test('duplicates of a condition that is set are removed, unknown fields of the first stay', () => {
    const text = `${HEAD}status:\n  conditions:\n    - type: A\n      status: "False"\n      since: now\n    - type: B\n      status: "True"\n    - type: A\n      status: "True"\n`;
    expect(editKptfile(text, [{ op: 'setCondition', condition: { type: 'A', status: 'Unknown' } }])).toBe(
      `${HEAD}status:\n  conditions:\n    - type: A\n      status: "Unknown"\n      since: now\n    - type: B\n      status: "True"\n`,
    );
  });

  test('a byte order mark and a missing final line break stay', () => {
    const text = `\uFEFF${HEAD}status:\n  conditions:\n    - type: A\n      status: "False"`;
    expect(editKptfile(text, [TRUE_A])).toBe(text.replace('False', 'True'));
    expect(editKptfile(text, [{ op: 'removeCondition', type: 'A' }])).toBe(`\uFEFF${HEAD.slice(0, -1)}`);
  });
});

describe('removing', () => {
  test('the last entry of a list takes its key and emptied parents along, comments elsewhere stay', () => {
    const gates = `info:\n  readinessGates:\n    - conditionType: A\n`;
    expect(editKptfile(`${HEAD}# info\n${gates}# end\n`, [{ op: 'removeGate', conditionType: 'A' }])).toBe(
      `${HEAD}# info\n# end\n`,
    );
    const withSite = `${HEAD}info:\n  site: x\n  readinessGates:\n    - conditionType: A\n`;
    expect(editKptfile(withSite, [{ op: 'removeGate', conditionType: 'A' }])).toBe(`${HEAD}info:\n  site: x\n`);
  });

  test('the first field of a list item leaves the dash to the next', () => {
    const text = `${HEAD}status:\n  conditions:\n    - message: m\n      reason: r\n      status: "True"\n      type: A\n`;
    expect(editKptfile(text, [TRUE_A])).toBe(`${HEAD}status:\n  conditions:\n    - status: "True"\n      type: A\n`);
    const commented = text.replace('      reason', '      # why\n      reason');
    expect(editKptfile(commented, [TRUE_A])).toBe(
      `${HEAD}status:\n  conditions:\n    -\n      # why\n      status: "True"\n      type: A\n`,
    );
  });

  test('a comment that would become part of the block text above is removed with the lines before it', () => {
    const text = `${HEAD}  annotations:\n    a: |\n      text\n    b: x\n      # deep\n    # shallow\n`;
    expect(editKptfile(text, [{ op: 'removeAnnotation', key: 'b' }])).toBe(
      `${HEAD}  annotations:\n    a: |\n      text\n    # shallow\n`,
    );
  });

  test('removing what is absent changes nothing', () => {
    const text = `${HEAD}status: {}\ninfo:\n`;
    const edits: KptfileEdit[] = [
      { op: 'removeCondition', type: 'A' },
      { op: 'removeGate', conditionType: 'A' },
      { op: 'removeLabel', key: 'toString' },
      { op: 'removeAnnotation', key: 'a' },
      { op: 'setInfo', field: 'site' },
      { op: 'setInfo', field: 'keywords', value: [] },
      { op: 'setUpstream' },
      { op: 'setRenderStatus' },
    ];
    for (const edit of edits) expect(editKptfile(text, [edit])).toBe(text);
    expect(editKptfile(text, edits)).toBe(text);
  });
});

describe('refusals', () => {
  test('a text that cannot be read, with code and place', () => {
    expect(errorOf(`${HEAD}info: *x\n`, TRUE_A)).toMatchObject({
      code: 'Unreadable',
      readCode: 'Anchor',
      line: 5,
      column: 7,
    });
  });

  test('an edit that is not well formed', () => {
    const edits = [
      { op: 'setCondition', condition: { type: '', status: 'True' } },
      { op: 'setCondition', condition: { type: 'A', status: 'true' } },
      { op: 'setCondition', condition: { type: 'A', status: 'True', lastTransitionTime: 'now' } },
      { op: 'setInfo', field: 'title', value: 'x' },
      { op: 'setInfo', field: 'keywords', value: 'x' },
      { op: 'setLabel', key: 'a'.repeat(2000), value: 'x' },
      { op: 'setLabel', key: '__proto__', value: 'x' },
      { op: 'setLabel', key: 'a', value: '\uD800' },
      { op: 'setName', name: '' },
      { op: 'rename' },
    ] as unknown as KptfileEdit[];
    for (const edit of edits) expect(errorOf(HEAD, edit).code, JSON.stringify(edit)).toBe('InvalidEdit');
  });

  test('a function that is not there', () => {
    const text = `${HEAD}pipeline:\n  mutators:\n    - image: a\n`;
    expect(errorOf(text, { op: 'removeFunction', list: 'mutators', index: 1 })).toMatchObject({
      code: 'NotFound',
      message: 'pipeline.mutators[1] does not exist: the list has 1 entries.',
    });
    expect(errorOf(text, { op: 'addFunction', list: 'validators', index: 1, function: { image: 'a' } }).code).toBe(
      'NotFound',
    );
  });

  test('a place that is written in an unusual way', () => {
    const explicit = `${HEAD}? status\n`;
    expect(errorOf(explicit, TRUE_A)).toMatchObject({ code: 'Unsupported', line: 5 });
    expect(errorOf(`${HEAD}status:\n  # here\n  {}\n`, TRUE_A).code).toBe('Unsupported');
  });

  test('a result that would be too large', () => {
    const large = `${HEAD}# ${'x'.repeat(MAX_KPTFILE_BYTES - 100)}\n`;
    expect(errorOf(large, { op: 'setInfo', field: 'description', value: 'y'.repeat(500) }).code).toBe('Unsupported');
  });
});

test('control characters, line separators and names of object methods are preserved', () => {
  for (const value of [
    '\u0000\u001b[31m',
    'a\u0085b\u2028c',
    '\uFEFF',
    'tab\t',
    'é – 中 😀',
    ' ',
    "'",
    '"\\',
    'a\r\nb',
  ]) {
    const result = readKptfile(editKptfile(HEAD, [{ op: 'setLabel', key: 'constructor', value }]));
    expect(result.ok && result.kptfile.metadata?.labels).toEqual({ constructor: value });
  }
});

test('applyKptfileEdit leaves its argument alone and shares what did not change', () => {
  const before = readKptfile(`${HEAD}info: {site: x}\nstatus: {conditions: [{type: A, status: "True"}]}\n`);
  if (!before.ok) throw new Error(before.error.message);
  const copy = structuredClone(before.kptfile);
  const after = applyKptfileEdit(before.kptfile, { op: 'removeCondition', type: 'A' });
  expect(before.kptfile).toEqual(copy);
  expect(after.info).toBe(before.kptfile.info);
  expect(Object.hasOwn(after, 'status')).toBe(false);
});

describe('many edits', () => {
  const types = Array.from({ length: 300 }, (_, index) => `c${index}`);
  const set = (status: 'True' | 'False'): KptfileEdit[] =>
    types.map((type) => ({ op: 'setCondition', condition: { type, status } }));
  const text = `${HEAD}# why\ninfo:\n  readinessGates:\n    - conditionType: own # kept\n`;

  test('of one kind give the same text as one after the other', () => {
    const few: KptfileEdit[] = [
      ...set('False').slice(0, 6),
      ...set('True').slice(2, 9),
      ...types.slice(1, 5).map((conditionType): KptfileEdit => ({ op: 'addGate', conditionType })),
      ...types.slice(0, 4).map((type): KptfileEdit => ({ op: 'removeCondition', type })),
      ...types.slice(1, 3).map((conditionType): KptfileEdit => ({ op: 'removeGate', conditionType })),
    ];
    expect(editKptfile(text, few)).toBe(few.reduce((before, edit) => editKptfile(before, [edit]), text));
  });

  test('of one kind read the text once, not once each', () => {
    const decode = vi.spyOn(SourceText.prototype, 'lineBreak', 'get');
    editKptfile(text, [...set('False'), ...set('True')]);
    expect(decode.mock.calls.length).toBeLessThan(10);
    decode.mockRestore();
  });
});

describe('more entries than allowed', () => {
  const list = (count: number, item: (index: number) => string) =>
    Array.from({ length: count }, (_, i) => item(i)).join('');
  const full =
    `${HEAD}info:\n  readinessGates:\n${list(MAX_GATES, (i) => `    - conditionType: t${i}\n`)}` +
    `status:\n  conditions:\n${list(MAX_CONDITIONS, (i) => `    - type: t${i}\n      status: "True"\n`)}`;

  test('are refused by their number', () => {
    const condition: KptfileEdit = { op: 'setCondition', condition: { type: 'more', status: 'True' } };
    expect(errorOf(full, condition)).toMatchObject({
      code: 'TooMany',
      message: 'status.conditions has 501 conditions; at most 500 are allowed. Remove those that are not needed.',
    });
    expect(errorOf(full, { op: 'addGate', conditionType: 'more' })).toMatchObject({
      code: 'TooMany',
      message:
        'info.readinessGates has 501 readiness gates; at most 500 are allowed. Remove those that are not needed.',
    });
    const changed: KptfileEdit = { op: 'setCondition', condition: { type: 't1', status: 'False' } };
    expect(editKptfile(full, [changed])).toContain('- type: t1\n      status: "False"\n');
  });
});
