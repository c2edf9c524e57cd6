# frozen_string_literal: true

require_relative "../library_page"

module Memprof
  class Web
    module Pages
      # `/library/1732252245000`: what is known of a dump.
      class LibraryDump < LibraryPage
        at "/library/:number"
        post "/library/:number/rename", :rename
        post "/library/:number/delete", :delete

        def title = entry_of_path.name

        def data
          dump = entry_of_path.to_h
          others = library.map(&:to_h).select { |row| row[:app] == dump[:app] && row[:id] != dump[:id] }
          { dump: dump, file: entry_of_path.path, others: others.first(20) }
        end

        # Gives the dump another name, and application.
        def rename(request)
          number = entry_of_path.number
          name = request.form["name"].to_s
          raise BadRequest, "name is missing" if name.strip.empty?

          heaps.forget(number) # which is open under its old name
          library.rename(number, name, app: request.form["app"])
          "/library/#{number}"
        end

        # Deletes it, and closes its heap.
        def delete(_request)
          number = entry_of_path.number
          heaps.forget(number)
          library.delete(number)
          "/library"
        end
      end
    end
  end
end
