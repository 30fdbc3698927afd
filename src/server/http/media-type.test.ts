import { expect, test } from 'vitest';
import { negotiate } from './media-type.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

test.each([
  [undefined, 'json object'],
  ['', 'json object'],
  ['*/*', 'json object'],
  ['application/json', 'json object'],
  ['application/json;stream=watch', 'json object'],
  ['application/yaml', 'yaml object'],
  ['application/yaml;q=0.5, application/json', 'json object'],
  ['application/json;q=0.5, application/yaml;q=0.9', 'yaml object'],
  [`${TABLE},application/json`, 'json table'],
  ['application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json', 'json object'],
  ['application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1', 'json partial'],
  [
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
    'json partial',
  ],
  ['application/vnd.kubernetes.protobuf,application/json', 'json object'],
  ['text/html, */*;q=0.1', 'json object'],
])('%s', (accept, expected) => {
  const { encoding, as } = negotiate(accept);
  expect(`${encoding} ${as}`).toBe(expected);
});

test.each([
  'application/vnd.kubernetes.protobuf',
  'text/html',
  'application/json;q=0',
  'application/json;as=Pie;g=meta.k8s.io;v=v1',
  'application/json;as=__proto__;g=meta.k8s.io;v=v1',
])('nothing else: %s', (accept) => {
  expect(() => negotiate(accept)).toThrow(expect.objectContaining({ code: 'NotAcceptable' }));
});
