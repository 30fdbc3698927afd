import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { defineKind } from '../kind.ts';
import { labelSelectorSchema } from '../label-selector.ts';
import { conditionSchema } from './condition-schema.ts';

const IPAM = { group: 'ipam.resource.nephio.org', version: 'v1alpha1' } as const;

const prefixSchema = z
  .string()
  .refine((text) => ipaddr.isValidCIDR(text), 'must be an address and a prefix length, such as 10.0.0.0/24');
const labels = z.record(z.string(), z.string());
const networkInstanceRef = z.object({ name: z.string().min(1), namespace: z.string().optional() });
const prefixKind = z.enum(['network', 'loopback', 'pool', 'aggregate']);

export const networkInstanceKind = defineKind({
  ...IPAM,
  kind: 'NetworkInstance',
  plural: 'networkinstances',
  categories: ['nephio'],
  description: 'A routing context with its aggregates; addresses of two instances may overlap.',
  spec: z.object({
    prefixes: z
      .array(z.object({ prefix: prefixSchema, labels: labels.optional() }))
      .optional()
      .describe('Aggregates.'),
  }),
  status: z.object({ conditions: z.array(conditionSchema).optional() }),
});

export const ipPrefixKind = defineKind({
  ...IPAM,
  kind: 'IPPrefix',
  plural: 'ipprefixes',
  categories: ['nephio'],
  description: 'A prefix that addresses and prefixes are taken from.',
  spec: z.object({
    kind: prefixKind.default('network'),
    networkInstance: networkInstanceRef,
    prefix: prefixSchema,
    labels: labels.optional().describe('What claims select by.'),
  }),
  status: z.object({ conditions: z.array(conditionSchema).optional(), prefix: z.string().optional() }),
  selectableFields: [{ path: 'spec.networkInstance.name' }],
});

export const ipClaimKind = defineKind({
  ...IPAM,
  kind: 'IPClaim',
  plural: 'ipclaims',
  categories: ['nephio'],
  description: 'A request for an address or a prefix.',
  spec: z.object({
    kind: prefixKind.default('network'),
    networkInstance: networkInstanceRef,
    addressFamily: z.enum(['ipv4', 'ipv6']).optional(),
    prefix: prefixSchema.optional().describe('A fixed request.'),
    prefixLength: z.int().min(0).max(128).optional(),
    index: z.int().min(0).optional(),
    createPrefix: z.boolean().optional().describe('Ask for a prefix instead of an address.'),
    labels: labels.optional(),
    selector: labelSelectorSchema.optional().describe('Labels of the prefixes to take from.'),
  }),
  status: z.object({
    conditions: z.array(conditionSchema).optional(),
    prefix: z.string().optional(),
    gateway: z.string().optional(),
    expiryTime: z.string().optional(),
  }),
  selectableFields: [{ path: 'spec.networkInstance.name' }],
});
