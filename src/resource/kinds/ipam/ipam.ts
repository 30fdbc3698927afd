import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { labelSelectorSchema } from '../../selector/label-selector.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../common/columns.ts';
import { conditionsSchema } from '../common/condition-schema.ts';

const IPAM = { group: 'ipam.resource.nephio.org', version: 'v1alpha1' } as const;

const PREFIX = 'must be an address and a prefix length, such as 10.0.0.0/24';
const prefixSchema = z
  .string()
  // For the definition in a cluster: a rule would exceed what the items of a list may cost, and isCIDR differs between versions.
  .regex(/^[0-9A-Fa-fxX:.]+(%[^/]*)?\/[0-9]{1,3}$/, { error: PREFIX, abort: true })
  .refine((text) => ipaddr.isValidCIDR(text), PREFIX)
  .describe('IP address with prefix length, such as 10.0.0.0/24.');
const labels = z.record(z.string(), z.string()).describe('Labels that the selectors of claims match.');
const networkInstanceRef = z
  .object({
    name: z.string().min(1).describe('Name of the NetworkInstance.'),
    namespace: z
      .string()
      .optional()
      .describe('Namespace of the NetworkInstance. Defaults to the namespace of the object.'),
  })
  .describe('Reference to the NetworkInstance (routing context).');
const prefixKind = z
  .enum(['network', 'loopback', 'pool', 'aggregate'])
  .describe('Kind of the prefix: network, loopback, pool or aggregate.');

const NETWORK_COLUMN = {
  name: 'Network',
  type: 'string',
  jsonPath: '.spec.networkInstance.name',
  value: (object: { readonly spec: { readonly networkInstance: { readonly name: string } } }) =>
    object.spec.networkInstance.name,
} as const;
const KIND_COLUMN = {
  name: 'Kind',
  type: 'string',
  jsonPath: '.spec.kind',
  value: (object: { readonly spec: { readonly kind: string } }) => object.spec.kind,
} as const;

export const networkInstanceKind = defineKind({
  ...IPAM,
  kind: 'NetworkInstance',
  plural: 'networkinstances',
  categories: ['nephio'],
  description: 'A routing context with its aggregates; addresses of two instances may overlap.',
  spec: z
    .object({
      prefixes: z
        .array(z.object({ prefix: prefixSchema, labels: labels.optional() }))
        .optional()
        .describe('Aggregates.'),
    })
    .describe('Prefixes of the network instance.'),
  status: z.object({ conditions: conditionsSchema.optional() }).describe('Observed state of the network instance.'),
  printerColumns: [NAME_COLUMN, READY_COLUMN, AGE_COLUMN],
});

export const ipPrefixKind = defineKind({
  ...IPAM,
  kind: 'IPPrefix',
  plural: 'ipprefixes',
  categories: ['nephio'],
  description: 'A prefix that addresses and prefixes are taken from.',
  spec: z
    .object({
      kind: prefixKind.default('network'),
      networkInstance: networkInstanceRef,
      prefix: prefixSchema,
      labels: labels.optional(),
    })
    .describe('Desired prefix.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      prefix: z.string().optional().describe('Allocated prefix.'),
    })
    .describe('Observed state of the prefix.'),
  selectableFields: [{ path: 'spec.networkInstance.name' }],
  printerColumns: [
    NAME_COLUMN,
    NETWORK_COLUMN,
    KIND_COLUMN,
    { name: 'Prefix', type: 'string', jsonPath: '.spec.prefix', value: (object) => object.spec.prefix },
    READY_COLUMN,
    AGE_COLUMN,
  ],
});

export const ipClaimKind = defineKind({
  ...IPAM,
  kind: 'IPClaim',
  plural: 'ipclaims',
  categories: ['nephio'],
  description: 'A request for an address or a prefix.',
  spec: z
    .object({
      kind: prefixKind.default('network'),
      networkInstance: networkInstanceRef,
      addressFamily: z.enum(['ipv4', 'ipv6']).optional().describe('Address family: ipv4 or ipv6.'),
      prefix: prefixSchema.optional().describe('Requested fixed prefix or address.'),
      prefixLength: z.int().min(0).max(128).optional().describe('Requested prefix length in bits.'),
      index: z.int().min(0).optional().describe('Requested index of the address within its prefix.'),
      createPrefix: z.boolean().optional().describe('If true, allocates a prefix instead of an address.'),
      labels: labels.optional().describe('Labels of the allocated address or prefix.'),
      selector: labelSelectorSchema.optional().describe('Label selector for the prefixes to allocate from.'),
    })
    .describe('Requested address or prefix.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      prefix: z.string().optional().describe('Allocated address or prefix.'),
      gateway: z.string().optional().describe('Address of the gateway of the network.'),
      expiryTime: z.string().optional().describe('Time at which the allocation expires.'),
    })
    .describe('Observed state of the claim.'),
  selectableFields: [{ path: 'spec.networkInstance.name' }],
  printerColumns: [
    NAME_COLUMN,
    NETWORK_COLUMN,
    KIND_COLUMN,
    { name: 'Prefix', type: 'string', jsonPath: '.status.prefix', value: (object) => object.status?.prefix },
    {
      name: 'Gateway',
      type: 'string',
      priority: 1,
      jsonPath: '.status.gateway',
      value: (object) => object.status?.gateway,
    },
    READY_COLUMN,
    AGE_COLUMN,
  ],
});
