import { z } from 'zod'
import { defineOperation } from './operation.ts'

export const getHealth = defineOperation({
  id: 'service.health',
  summary: 'Whether the API can do its work',
  method: 'GET',
  path: '/health',
  auth: 'none',
  replies: { 200: { description: 'It can', body: 'text/plain' } },
  errors: [503],
})

export const getOpenApi = defineOperation({
  id: 'service.openapi',
  summary: 'This document',
  method: 'GET',
  path: '/openapi.json',
  auth: 'none',
  replies: { 200: { description: 'OpenAPI 3.1', body: z.looseObject({ openapi: z.string() }) } },
  errors: [],
})

export const getDocs = defineOperation({
  id: 'service.docs',
  summary: 'This reference as a page for people',
  method: 'GET',
  path: '/docs',
  auth: 'none',
  replies: { 200: { description: 'The page', body: 'text/html' } },
  errors: [],
})
