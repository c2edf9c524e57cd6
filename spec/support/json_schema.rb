# frozen_string_literal: true

require "json"

# Checks a document against a schema: the part of JSON Schema 2020-12 that docs/schemas/ uses. It is stricter
# in one thing: a key that the schema does not name is a fault, unless the schema says what other keys are.
class JSONSchema
  TYPES = {
    "object" => Hash, "array" => Array, "string" => String, "integer" => Integer, "number" => Numeric,
    "null" => NilClass
  }.freeze
  KEYWORDS = %w[$schema $defs $ref title description type properties required items additionalProperties anyOf
    allOf].freeze

  def self.of(name)
    new(JSON.parse(File.read(File.expand_path("../../docs/schemas/#{name}.json", __dir__))))
  end

  attr_reader :schema

  def initialize(schema)
    @schema = schema
  end

  # What is wrong with a document, each with its place.
  def faults(document, schema = @schema, place = "")
    unknown = schema.keys - KEYWORDS
    raise ArgumentError, "unknown keywords: #{unknown.join(", ")}" if unknown.any?

    schema = resolved(schema)
    wrong = schema.key?("type") && Array(schema["type"]).none? { |type| type?(document, type) }
    return ["#{place}: #{document.inspect[0, 60]} is not of type #{schema["type"]}"] if wrong

    any_of(document, schema, place) + keys(document, schema, place) + items(document, schema, place)
  end

  private

  # References and `allOf` are merged into the schema.
  def resolved(schema)
    schema = at(schema["$ref"]).merge(schema.except("$ref")) if schema.key?("$ref")
    Array(schema["allOf"]).map { |one| resolved(one) }.reduce(schema.except("allOf")) do |one, other|
      one.merge(other) { |key, old, new| merged(key, old, new) }
    end
  end

  def merged(key, old, new)
    case key
    when "properties" then old.merge(new)
    when "required" then old | new
    else old
    end
  end

  def at(reference) = @schema.dig(*reference.delete_prefix("#/").split("/"))

  def type?(document, type)
    type == "boolean" ? [true, false].include?(document) : TYPES.fetch(type) === document
  end

  def any_of(document, schema, place)
    found = Array(schema["anyOf"]).map { |one| faults(document, one, place) }
    found.empty? || found.any?(&:empty?) ? [] : found.min_by(&:size)
  end

  def keys(document, schema, place)
    return [] unless document.is_a?(Hash) && (schema.key?("properties") || schema.key?("required"))

    missing = Array(schema["required"]) - document.keys
    missing.map { |key| "#{place}: #{key} is missing" } + document.flat_map do |key, value|
      known = schema["properties"].fetch(key) { schema["additionalProperties"] }
      known ? faults(value, known, "#{place}/#{key}") : ["#{place}: #{key} is not in the schema"]
    end
  end

  def items(document, schema, place)
    return [] unless document.is_a?(Array) && schema.key?("items")

    document.each_with_index.flat_map { |one, index| faults(one, schema["items"], "#{place}/#{index}") }
  end
end
