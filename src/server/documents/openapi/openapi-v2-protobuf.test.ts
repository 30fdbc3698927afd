import { expect, test } from 'vitest';
import { wholeObject } from '../../../resource/schema/schema-of-kind.ts';
import { widgetKind } from '../../../resource/schema/testing.ts';
import { servedGroups } from '../discovery/served.ts';
import { openApiV2 } from './openapi-v2.ts';
import { openApiV2Protobuf } from './openapi-v2-protobuf.ts';

type Fields = Map<number, (Buffer | number)[]>;

/** Reads a message by the wire format alone. */
function read(message: Buffer | number | undefined): Fields {
  if (!Buffer.isBuffer(message)) throw new Error('no message');
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = message[at++] ?? Number.NaN;
      value += (byte % 0x80) * scale;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const value = varint();
    const isBytes = tag % 8 === 2;
    if (!isBytes && tag % 8 !== 0) throw new Error(`wire type ${tag % 8}`);
    const content = isBytes ? message.subarray(at, at + value) : value;
    if (isBytes) at += value;
    const number = Math.floor(tag / 8);
    fields.set(number, [...(fields.get(number) ?? []), content]);
  }
  expect(at).toBe(message.length);
  return fields;
}

const text = (message: Fields, number: number) => message.get(number)?.map(String).join(', ');
const inner = (message: Fields, number: number) => read(message.get(number)?.[0]);
/** A map, written as messages of name and value. */
const entries = (message: Fields, number: number) =>
  new Map((message.get(number) ?? []).map((entry) => [text(read(entry), 1), inner(read(entry), 2)] as const));

const schema = wholeObject('Something to test with.', {
  properties: {
    spec: {
      type: 'object',
      required: ['map'],
      properties: {
        map: { type: 'object', additionalProperties: { type: 'integer', format: 'int64' } },
        open: { type: 'object', additionalProperties: true },
        closed: { type: 'object', additionalProperties: false },
        list: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      },
    },
  },
});
const kind = { ...widgetKind, schema, description: 'x'.repeat(300) };
const groups = servedGroups({ kinds: [{ kind, verbs: ['get', 'patch'], subResources: [] }], reviews: [] });
const document = read(
  openApiV2Protobuf(
    openApiV2(
      groups.flatMap(({ versions }) => versions),
      '7',
    ),
  ),
);

test('the document has its parts under the numbers of OpenAPIv2.proto', () => {
  expect(text(document, 1)).toBe('2.0');
  expect(text(inner(document, 2), 2)).toBe('7');
  const paths = entries(inner(document, 8), 2);
  expect([...paths.keys()]).toEqual(['/apis/test.sluice.dev/v1/namespaces/{namespace}/widgets/{name}']);
});

test('schemas keep fields, types, references and extensions', () => {
  const definitions = entries(inner(document, 9), 1);
  const widget = definitions.get('dev.sluice.test.v1.Widget') as Fields;
  expect(text(widget, 4)).toBe('Something to test with.');
  expect(text(inner(widget, 22), 1)).toBe('object');
  expect(text(entries(widget, 31).get('x-kubernetes-group-version-kind') as Fields, 2)).toBe(
    '[{"group":"test.sluice.dev","version":"v1","kind":"Widget"}]',
  );
  const properties = entries(inner(widget, 25), 1);
  expect(text(properties.get('metadata') as Fields, 1)).toBe(
    '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
  );
  const spec = properties.get('spec') as Fields;
  expect(text(spec, 19)).toBe('map');
  const fields = entries(inner(spec, 25), 1);
  const values = inner(inner(fields.get('map') as Fields, 21), 1);
  expect([text(inner(values, 22), 1), text(values, 2)]).toEqual(['integer', 'int64']);
  expect(inner(fields.get('open') as Fields, 21)).toEqual(new Map([[2, [1]]]));
  expect(inner(fields.get('closed') as Fields, 21)).toEqual(new Map([[2, [0]]]));
  const list = fields.get('list') as Fields;
  expect(text(inner(inner(inner(list, 23), 1), 22), 1)).toBe('string');
  expect(text(entries(list, 31).get('x-kubernetes-list-type') as Fields, 2)).toBe('"set"');
});

test('operations keep the fields that clients read', () => {
  const [path] = entries(inner(document, 8), 2).values();
  const patch = inner(path as Fields, 8);
  expect(text(patch, 7)).toContain('application/merge-patch+json');
  expect(text(entries(patch, 13).get('x-kubernetes-group-version-kind') as Fields, 2)).toBe(
    '{"group":"test.sluice.dev","version":"v1","kind":"Widget"}',
  );
  const parameters = (patch.get(8) ?? []).map((item) => inner(read(item), 1));
  const [body, ...query] = parameters;
  expect(text(inner(body as Fields, 1), 3)).toBe('body');
  expect(query.map((item) => text(inner(inner(item, 2), 3), 4))).toEqual([
    'dryRun',
    'fieldManager',
    'fieldValidation',
    'force',
  ]);
  const variables = ((path as Fields).get(9) ?? []).map((item) => inner(inner(read(item), 1), 2));
  expect(variables.flatMap((item) => (item.has(4) ? [text(inner(item, 4), 4)] : []))).toEqual(['name', 'namespace']);
  const answer = entries(inner(patch, 9), 1).get('200') as Fields;
  expect(text(inner(inner(inner(answer, 1), 2), 1), 1)).toBe('#/definitions/dev.sluice.test.v1.Widget');
});
