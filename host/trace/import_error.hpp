// The one error an import can end in: a single line naming file, place and remedy.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace slipstream::trace {

// Text of a file in a line for people: a control character would break the line, or steer the terminal.
inline std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) c = '?';
    }
    return out;
}

// what() is "FILE: PLACE: WHAT; REMEDY", without a line break whatever the file contained, so that a command line tool
// can print it as it is and exit with its bad-input code.
class import_error : public std::runtime_error {
public:
    import_error(std::string_view file, std::string_view place, std::string_view what, std::string_view remedy)
        : std::runtime_error(one_line(file, place, what, remedy)) {}

private:
    static void append_printable(std::string& line, std::string_view text, std::size_t bytes_max) {
        line += printable(text.substr(0, bytes_max));
        if (text.size() > bytes_max) line += "...";
    }

    static std::string one_line(std::string_view file, std::string_view place, std::string_view what,
                                std::string_view remedy) {
        std::string line;
        append_printable(line, file, 4096);
        if (!place.empty()) {
            line += ": ";
            append_printable(line, place, 512);
        }
        line += ": ";
        append_printable(line, what, 512);
        line += "; ";
        append_printable(line, remedy, 512);
        return line;
    }
};

}  // namespace slipstream::trace
