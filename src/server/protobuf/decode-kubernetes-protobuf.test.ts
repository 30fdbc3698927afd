import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decodeKubernetesProtobuf } from './decode-kubernetes-protobuf.ts';

interface Fixture {
  readonly name: string;
  readonly protobuf: string;
  readonly json: unknown;
}

/** Written by Go's own encoders; test/go/fixtures/main.go describes how to generate the file. */
const FIXTURES = readFileSync(new URL('../../../test/go/fixtures/protobuf-bodies.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Fixture);

describe('what Go encodes is read as its JSON form', () => {
  test.each(FIXTURES)('$name', ({ protobuf, json }) => {
    expect(decodeKubernetesProtobuf(Buffer.from(protobuf, 'base64'))).toStrictEqual(json);
  });
});
